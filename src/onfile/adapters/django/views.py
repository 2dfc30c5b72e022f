"""What a person reads and deletes, as two sync views that serve under WSGI and ASGI alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ...blocking import Blocking
from ...wire.answers import NO_STORE, Answer, forget_answer, read_answer
from .conf import actor_function, configured_memory


@require_http_methods(["GET"])
def read_memories(request: HttpRequest) -> HttpResponse:
    """Answer every fact that applies to who is signed in."""
    return _answered(read_answer, request)


@require_http_methods(["DELETE"])
def forget_memory(request: HttpRequest, id: str) -> HttpResponse:  # noqa: A002  # the record's own field name
    """Delete one fact of who is signed in; there is no way back."""
    return _answered(forget_answer, request, id)


def _answered(answer: Callable[..., Awaitable[Answer]], request: HttpRequest, *asked: str) -> HttpResponse:
    memory = configured_memory()
    actor = actor_function()
    told: Any = {"calling": actor(request), "thread_id": request.GET.get("threadId"), "asked": actor}
    if isinstance(memory, Blocking):
        done = memory.run(answer(memory.memory, *asked, **told))  # pyright: ignore[reportArgumentType]  # both are coroutine functions
    else:
        # On the server's own event loop under ASGI, and on this very thread's connection under WSGI.
        done = async_to_sync(answer)(memory, *asked, **told)
    return HttpResponse(done.body, status=done.status, content_type=done.media_type, headers=NO_STORE)
