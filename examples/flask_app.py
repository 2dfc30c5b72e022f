from flask import Flask, abort, request

from onfile import Actor, Memory
from onfile.adapters.flask import memory_blueprint
from onfile.blocking import Blocking
from onfile.stores import SqlMemoryProvider

provider = SqlMemoryProvider.from_url("sqlite+aiosqlite:///onfile.db")
memory = Blocking(Memory(provider))
memory.run(provider.setup())


def signed_in():
    person = {"session-of-ana": "ana", "session-of-bo": "bo"}.get(request.headers.get("X-Session", ""))
    return Actor(id=person, tenant_ref="acme") if person else abort(401)


app = Flask(__name__)
app.register_blueprint(memory_blueprint(memory, actor=signed_in))
