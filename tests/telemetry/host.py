"""A host of its own process: one turn and a person's acts, under the OpenTelemetry that its argument names.

Prints as JSON what left the process: span events, metric points, and all of it as an exporter writes it. A process can
set its global meter provider only once, so the tests start this file.
"""

from __future__ import annotations

import asyncio
import json
import sys

from onfile import Actor, Memory, ScopeContext
from onfile.adapters.turn import Turns
from onfile.testing import InMemoryMemoryProvider

CTX = ScopeContext(actor=Actor(id="zanzibar-ana", tenant_ref="zanzibar-acme"))
SCOPES = ["actor:zanzibar-ana", "zanzibar:depot", "tenant:zanzibar-acme"]


class Gone(InMemoryMemoryProvider):
    async def list(self, request):
        msg = "zanzibar is down"
        raise ConnectionError(msg)


async def turn() -> None:
    memory = Memory(InMemoryMemoryProvider(), scopes=lambda _: SCOPES)
    digest = await memory.offer(CTX, query="zanzibar?", run_id="run_1")
    call = {"key": "zanzibar", "fact": "4711zz"}
    assert (await memory.remember(call, digest=digest, ctx=CTX, run_id="run_1", tool_call_id="c1")).ok
    wide = {"scope": "zanzibar:depot", "key": "zanzibar", "text": "4712zz"}
    published = await memory.publish(**wide, ctx=CTX, elevated=True)
    assert (await memory.pin(published.record.id, pinned=True, ctx=CTX, elevated=True)).ok
    (entry,) = await memory.read_back(CTX)
    assert (await memory.forget(entry.id, CTX)).ok
    gone = Turns(memory=Memory(Gone()), on_error="continue")
    assert not (await gone.offer(CTX, query="zanzibar?", run_id="run_1")).block


def with_sdk() -> dict[str, object]:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))

    with trace.get_tracer("host").start_as_current_span("turn"):
        asyncio.run(turn())

    (span,) = exporter.get_finished_spans()
    measured = reader.get_metrics_data()
    points = {
        metric.name: [
            {"of": dict(point.attributes), "times": getattr(point, "value", getattr(point, "count", None))}
            for point in metric.data.data_points
        ]
        for resource in measured.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    events = [[event.name, dict(event.attributes)] for event in span.events]
    return {"events": events, "points": points, "raw": span.to_json() + measured.to_json()}


def main(telemetry: str) -> dict[str, object]:
    if telemetry == "sdk":
        return with_sdk()
    if telemetry == "api":
        import opentelemetry.trace  # noqa: F401  # the host loads it, and sets no SDK up
    asyncio.run(turn())
    return {"loaded": [name for name in sys.modules if name.startswith(("opentelemetry", "onfile.telemetry"))]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])))
