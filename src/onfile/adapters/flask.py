"""Flask: a blueprint by which a person reads, downloads and deletes what is on file about them."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response, request
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import BaseConverter

from ..blocking import Blocking
from ..records import Actor
from ..wire.answers import Answer, export_answer, forget_all_answer, forget_answer, read_answer


class _AnyText(BaseConverter):
    """A path's rest as it is, slashes and line breaks included."""

    regex = r"(?s:.*)"
    part_isolating = False


def memory_blueprint(memory: Blocking, *, actor: Callable[[], Actor | None]) -> Blueprint:
    """Build what `memory_router` builds for FastAPI: `app.register_blueprint(memory_blueprint(...))`.

    `GET` and `DELETE /agent/memories`, `DELETE /agent/memories/<id>` and `GET /agent/memory-export`.

    Args:
        memory: The door for code without an event loop; one for the whole process.
        actor: Answers who is signed in, from the request at hand, or None for nobody. What it
            raises, an `abort(...)` included, reaches your handlers unchanged.
    """
    blueprint = Blueprint("onfile", __name__)

    def know_the_converter(state: BlueprintSetupState) -> None:
        state.app.url_map.converters.setdefault("onfile_any_text", _AnyText)

    # Recorded before the rules are, so that the application knows it when they are added to it.
    blueprint.record_once(know_the_converter)

    def read_memories() -> Response:
        thread = request.args.get("threadId")
        return _response(memory.run(read_answer(memory.memory, calling=actor(), thread_id=thread, asked=actor)))

    def forget_memory(id: str) -> Response:  # noqa: A002  # the record's own field name
        thread = request.args.get("threadId")
        return _response(memory.run(forget_answer(memory.memory, id, calling=actor(), thread_id=thread, asked=actor)))

    def forget_memories() -> Response:
        return _response(memory.run(forget_all_answer(memory.memory, calling=actor(), asked=actor)))

    def export_memories() -> Response:
        return _response(memory.run(export_answer(memory.memory, calling=actor(), asked=actor)))

    blueprint.add_url_rule("/agent/memory-export", view_func=export_memories, methods=["GET"])
    blueprint.add_url_rule("/agent/memories", view_func=read_memories, methods=["GET"])
    blueprint.add_url_rule("/agent/memories", view_func=forget_memories, methods=["DELETE"])
    blueprint.add_url_rule("/agent/memories/<onfile_any_text:id>", view_func=forget_memory, methods=["DELETE"])
    return blueprint


def _response(answer: Answer) -> Response:
    return Response(answer.body, status=answer.status, mimetype=answer.media_type, headers=dict(answer.headers))
