"""What a person reads, downloads and deletes, as sync views that serve under WSGI and ASGI alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from ...blocking import Blocking
from ...wire.answers import Answer, export_answer, forget_all_answer, forget_answer, read_answer
from .conf import actor_function, configured_memory


@require_http_methods(["GET", "DELETE"])
def memories(request: HttpRequest) -> HttpResponse:
    """Answer every fact that applies to who is signed in, or delete all of their own."""
    if request.method == "DELETE":  # pyright: ignore[reportUnnecessaryComparison]  # Django ships no types
        return _answered(forget_all_answer, request)
    return _answered(read_answer, request, thread_id=request.GET.get("threadId"))


@require_http_methods(["DELETE"])
def forget_memory(request: HttpRequest, id: str) -> HttpResponse:  # noqa: A002  # the record's own field name
    """Delete one fact of who is signed in; there is no way back."""
    return _answered(forget_answer, request, id, thread_id=request.GET.get("threadId"))


@require_http_methods(["GET"])
def export_memories(request: HttpRequest) -> HttpResponse:
    """Answer every fact of who is signed in as a file."""
    return _answered(export_answer, request)


def _answered(
    answer: Callable[..., Awaitable[Answer]], request: HttpRequest, *asked: str, **told: str | None
) -> HttpResponse:
    memory, actor = configured_memory(), actor_function()
    known: dict[str, Any] = {**told, "calling": actor(request), "asked": actor}
    if isinstance(memory, Blocking):
        done = memory.run(answer(memory.memory, *asked, **known))  # pyright: ignore[reportArgumentType]  # all are coroutine functions
    else:
        # On the server's own event loop under ASGI, and on this very thread's connection under WSGI.
        done = async_to_sync(answer)(memory, *asked, **known)
    return HttpResponse(done.body, status=done.status, content_type=done.media_type, headers=done.headers)
