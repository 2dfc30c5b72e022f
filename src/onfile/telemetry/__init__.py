"""Telemetry: onfile's events as OpenTelemetry span events and metrics, where the host uses it."""
