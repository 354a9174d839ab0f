import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpClient } from '@keelson/client';
import type { AnyController } from '@keelson/controller-kit';
import { type AdmissionPlugin, statusErrors } from '@keelson/core';
import { ConfigMap, Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import test from 'ava';
import { createControlPlane } from '../../src/index.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { openTelemetry } from '../../src/opentelemetry.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

// Process of its own: the SDK registers global parts.

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
const spans = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const reader = new PeriodicExportingMetricReader({
  exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
  exportIntervalMillis: 3_600_000,
});
const meterProvider = new MeterProvider({ readers: [reader] });

const noSpiders: AdmissionPlugin = {
  name: 'NoSpiders',
  validate: async ({ object }) => {
    if (object?.metadata?.name !== 'spider') return;
    throw statusErrors.forbidden({ group: '', resource: 'configmaps' }, 'spider', 'no');
  },
};
const copier: AnyController = {
  name: 'copier',
  kind: ConfigMap,
  reconcile: async (map, { client }) => {
    if (map.metadata.name !== 'copied') return undefined;
    const secrets = client.resource(Secret).namespace('default');
    await secrets.create({ metadata: { name: 'copy' } }).catch(() => {});
    return undefined;
  },
} as AnyController;

const { tracing, metrics } = openTelemetry({ tracerProvider, meterProvider, metrics: createPromMetrics() });
const plane = await createControlPlane({ tracing, metrics, admission: [noSpiders], controllers: [copier] });
const server = await plane.listen();
test.after.always(async () => {
  await plane.close();
  await reader.shutdown();
});

const finished = (name: string, traceId: string): ReadableSpan | undefined =>
  spans.getFinishedSpans().find((span) => span.name === name && span.spanContext().traceId === traceId);
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId;
const maps = '/api/v1/namespaces/default/configmaps';
const create = (name: string, headers: Record<string, string>) =>
  fetch(server.url + maps, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ metadata: { name } }),
  });
const traceparent = (traceId: string) => `00-${traceId}-00f067aa0ba902b7-01`;

test.serial(
  'a create is a span in the trace of its client, with admission and the write to the store below it',
  async (t) => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    t.is((await create('first', { traceparent: traceparent(traceId) })).status, 201);
    const request = await until(() => finished('POST /api/v1/namespaces/{namespace}/configmaps', traceId));
    t.is(parentOf(request), '00f067aa0ba902b7');
    const { attributes } = request;
    t.is(attributes['http.response.status_code'], 201);
    t.is(attributes['http.route'], '/api/v1/namespaces/{namespace}/configmaps');
    t.is(attributes['http.request.method'], 'POST');
    t.is(attributes['url.path'], maps);
    t.is(attributes['k8s.namespace.name'], 'default');
    t.is(attributes['keelson.resource'], 'configmaps');
    t.is(attributes['keelson.verb'], 'create');
    const { spanId } = request.spanContext();
    t.is(parentOf(finished('admission NoSpiders validate', traceId)), spanId);
    const write = finished('store write', traceId);
    t.is(parentOf(write), spanId);
    t.is(write?.attributes['db.system.name'], 'memory');
  },
);

test.serial('50 concurrent requests keep their own traces', async (t) => {
  const ids = Array.from({ length: 50 }, (_, index) => (index + 1).toString(16).padStart(32, 'a'));
  await Promise.all(ids.map((id, index) => create(`many-${index}`, { traceparent: traceparent(id) })));
  for (const id of ids) {
    const request = await until(() => finished('POST /api/v1/namespaces/{namespace}/configmaps', id));
    t.is(parentOf(finished('store write', id)), request.spanContext().spanId);
  }
});

test.serial('requests of one HTTP/2 connection keep their own traces', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-traces-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', Date.now());
  const { url } = await plane.listen({ credentials });
  const { certificate: cert, key } = credentials.admin;
  const session = connect(url, { ca: credentials.authority, cert, key });
  t.teardown(() => session.destroy());
  const ids = Array.from({ length: 20 }, (_, index) => (index + 1).toString(16).padStart(32, 'b'));
  await Promise.all(
    ids.map(async (id, index) => {
      const stream = session.request({
        ...{ ':method': 'POST', ':path': maps, 'content-type': 'application/json', traceparent: traceparent(id) },
      });
      stream.end(JSON.stringify({ metadata: { name: `stream-${index}` } }));
      stream.resume();
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
      t.is(headers[':status'], 201);
    }),
  );
  for (const id of ids) {
    const request = await until(() => finished('POST /api/v1/namespaces/{namespace}/configmaps', id));
    t.is(request.attributes['network.protocol.version'], '2.0');
    t.is(parentOf(request), '00f067aa0ba902b7');
    t.is(parentOf(finished('store write', id)), request.spanContext().spanId);
  }
});

test.serial('a rejected request is no failure of the plugin; the reason is an attribute', async (t) => {
  const traceId = '5bf92f3577b34da6a3ce929d0e0e4736';
  t.is((await create('spider', { traceparent: traceparent(traceId) })).status, 403);
  const request = await until(() => finished('POST /api/v1/namespaces/{namespace}/configmaps', traceId));
  t.is(request.attributes['http.response.status_code'], 403);
  const plugin = finished('admission NoSpiders validate', traceId);
  t.is(plugin?.attributes['error.type'], 'Forbidden');
  t.is(plugin?.status.code, 0);
});

test.serial('a run of a controller is a span, and the writes of the run are below it', async (t) => {
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'copied' } });
  const all = () => spans.getFinishedSpans();
  const write = await until(() =>
    all().find((span) => {
      const run = all().find((other) => other.spanContext().spanId === parentOf(span));
      return span.name === 'store write' && run?.name === 'reconcile copier';
    }),
  );
  const run = all().find((other) => other.spanContext().spanId === parentOf(write));
  t.is(run?.attributes['keelson.controller'], 'copier');
  t.is(run?.attributes['k8s.namespace.name'], 'default');
});

test.serial('a client sends the context of the active span', async (t) => {
  const client = createHttpClient({ server: server.url, tracing });
  t.teardown(() => client.close());
  const span = tracerProvider.getTracer('test').startSpan('caller');
  await context.with(trace.setSpan(context.active(), span), () =>
    client.resource(ConfigMap).namespace('default').list(),
  );
  span.end();
  const { traceId, spanId } = span.spanContext();
  const request = await until(() => finished('GET /api/v1/namespaces/{namespace}/configmaps', traceId));
  t.is(parentOf(request), spanId);
});

test.serial('metrics are recorded by the SDK and by the Prometheus text alike', async (t) => {
  const { resourceMetrics } = await reader.collect();
  const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  const found = all.filter(({ descriptor }) => descriptor.name !== 'process.uptime');
  const text = await (await fetch(`${server.url}/metrics`)).text();
  for (const { descriptor } of found) t.regex(text, new RegExp(`^# HELP ${descriptor.name} `, 'm'));
  t.true(found.length > 10, found.map(({ descriptor }) => descriptor.name).join());
  const requests = found.find(({ descriptor }) => descriptor.name === 'apiserver_request_total');
  t.true(requests?.dataPoints.some(({ attributes }) => attributes['verb'] === 'POST' && attributes['code'] === '201'));
  const runs = found.find(({ descriptor }) => descriptor.name === 'keelson_controller_runs_total');
  t.true(runs !== undefined && runs.dataPoints.length > 0);
});
