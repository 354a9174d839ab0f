import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { RequestContext, UserInfo } from '@keelson/core';
import { FakeClock, type Metrics, noMetrics } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type HttpApiOptions, http2ServerOptions } from '../src/index.ts';
import { configMap, FakeRegistry, listOf, stored } from './support/fake-registry.ts';
import { call, type Served, serve } from './support/serve.ts';

const all = '/api/v1/namespaces/default/configmaps';
const one = `${all}/a`;
const jane: UserInfo = { name: 'jane', groups: [] };
const never = () => new Promise<never>(() => {});

interface Scene extends Served {
  readonly clock: FakeClock;
  readonly registry: FakeRegistry;
  /** Values of the gauges that count what requests occupy. */
  readonly occupied: ReadonlyMap<string, number>;
  /** Resolves when the first request has its slot. */
  admitted(): Promise<void>;
}

const gauges: ReadonlySet<string> = new Set([
  'apiserver_current_inflight_requests',
  'keelson_http_watches',
  'keelson_http_connects',
  'apiserver_flowcontrol_current_executing_requests',
  'apiserver_flowcontrol_current_inqueue_requests',
]);

/** A server that reports what its requests occupy. */
async function countedSlots(t: ExecutionContext, options: Partial<HttpApiOptions> = {}): Promise<Scene> {
  const clock = new FakeClock();
  const registry = new FakeRegistry();
  registry.service(configMap).objects.set('a', stored(configMap, 'a', 5));
  let authorized = 0;
  const occupied = new Map<string, number>();
  const metrics: Metrics = {
    ...noMetrics,
    gauge: ({ name }) => ({
      set: (value, labels = {}) => {
        if (gauges.has(name)) occupied.set([name, ...Object.values(labels)].join(' '), value);
      },
      add: () => {},
    }),
  };
  const served = await serve(t, {
    registry,
    clock,
    metrics,
    limits: { bodyBytes: 1000 },
    authenticate: () => jane,
    authorize: () => {
      authorized += 1;
      return true;
    },
    ...options,
  });
  return {
    ...served,
    clock,
    registry,
    occupied,
    admitted: async () => {
      await until(() => authorized > 0, 'a request has its slot');
    },
  };
}

/** Bytes on a connection that stays open until the test ends. */
function send(t: ExecutionContext, port: number, bytes: string): { socket: Socket; text(): string; closed(): boolean } {
  let text = '';
  let closed = false;
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  t.teardown(() => socket.destroy());
  return { socket, text: () => text, closed: () => closed };
}

const halfPost = `POST ${all} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;

/** Fails unless nothing but the request for the metrics occupies anything, and requests are served. */
async function allFree(t: ExecutionContext, { port, registry, occupied }: Scene): Promise<void> {
  registry.service(configMap).on = {};
  t.is((await call(port, 'GET', one)).status, 200);
  t.is((await call(port, 'POST', all, { body: '{}' })).status, 201);
  const used = () => [...occupied].filter(([, value]) => value !== 0).map(([name, value]) => `${name} ${value}`);
  for (let attempt = 0; attempt < 1000; attempt++) {
    t.is((await call(port, 'GET', '/metrics')).status, 200);
    if (used().length === 2) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.deepEqual(used().sort(), [
    'apiserver_current_inflight_requests readOnly 1',
    'apiserver_flowcontrol_current_executing_requests catch-all 1',
  ]);
}

/** Every way in which a request ends, except those that need another kind of server. */
const endings: Readonly<Record<string, (t: ExecutionContext, scene: Scene) => Promise<void>>> = {
  'a response': async (t, { port }) => {
    t.is((await call(port, 'GET', one)).status, 200);
    t.is((await call(port, 'POST', all, { body: '{}' })).status, 201);
  },
  'a failure of the operation': async (t, { port, registry }) => {
    registry.service(configMap).on = { get: () => Promise.reject(new TypeError('broken')) };
    t.is((await call(port, 'GET', one)).status, 500);
  },
  'a body that is too large': async (t, { port }) => {
    t.is((await call(port, 'POST', all, { body: 'x'.repeat(2000) })).status, 413);
    t.is((await call(port, 'POST', all, { body: 'x'.repeat(9000) })).status, 413);
  },
  'a body that is incomplete at the deadline': async (t, { port, clock, admitted }) => {
    const sent = send(t, port, halfPost);
    await admitted();
    clock.advance(35_000);
    await until(sent.closed, 'the connection is closed');
    t.regex(sent.text(), /^HTTP\/1.1 504 /);
    t.regex(sent.text(), /\r\nConnection: close\r\n/i);
  },
  'a client that disconnects in the middle of its body': async (t, { port, admitted }) => {
    const sent = send(t, port, halfPost);
    await admitted();
    sent.socket.destroy();
  },
  'a client that disconnects while the operation runs': async (t, { port, registry }) => {
    const seen: RequestContext[] = [];
    registry.service(configMap).on.get = (context: RequestContext) => {
      seen.push(context);
      return new Promise((_, reject) => context.signal?.addEventListener('abort', () => reject(new Error('stopped'))));
    };
    const sent = send(t, port, `GET ${one} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => seen.length === 1, 'the operation runs');
    sent.socket.destroy();
  },
  'an operation that continues after its deadline': async (t, { port, registry, clock }) => {
    let started = 0;
    const hang = () => {
      started += 1;
      return never();
    };
    registry.service(configMap).on = { get: hang, create: hang, watch: hang };
    const running = [
      call(port, 'GET', one),
      call(port, 'POST', all, { body: '{}' }),
      call(port, 'GET', `${all}?watch=1`),
    ];
    await until(() => started === 3, 'three operations run');
    clock.advance(61_000);
    for (const reply of await Promise.all(running)) t.is(reply.status, 504);
  },
  'the timeout of the client': async (t, { port, registry, clock }) => {
    let started = 0;
    registry.service(configMap).on.get = () => {
      started += 1;
      return never();
    };
    const running = call(port, 'GET', `${one}?timeout=2s`);
    await until(() => started === 1, 'the operation runs');
    clock.advance(2000);
    t.is((await running).status, 504);
  },
  'a list whose client does not read it': async (t, { port, registry, clock }) => {
    const large = Array.from({ length: 400 }, (_, i) => stored(configMap, `n${i}`, 5, 'x'.repeat(100_000)));
    registry.service(configMap).on.list = () => Promise.resolve(listOf(configMap, large));
    const sent = send(t, port, `GET ${all} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => sent.text().length > 0, 'the answer begins');
    sent.socket.pause();
    await until(() => !sent.closed(), 'it is open');
    clock.advance(61_000);
  },
  'a watch whose client disconnects': async (t, { port, registry }) => {
    const sent = send(t, port, `GET ${all}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => registry.service(configMap).watches.length === 1, 'the watch is open');
    sent.socket.destroy();
  },
  'a watch that fails before its first event': async (t, { port, registry }) => {
    registry.service(configMap).on.watch = () => Promise.reject(new Error('broken'));
    t.is((await call(port, 'GET', `${all}?watch=1`)).status, 500);
  },
  'a watch requested with HEAD': async (t, { port }) => {
    t.is((await call(port, 'HEAD', `${all}?watch=1`)).status, 200);
  },
};

for (const [ending, act] of Object.entries(endings)) {
  test(`the slot of a request is released after ${ending}`, async (t) => {
    const scene = await countedSlots(t);
    await act(t, scene);
    await allFree(t, scene);
  });
}

test('the slot of a request is released when it is not authorized, or the authorizer fails', async (t) => {
  let decide: () => boolean = () => false;
  const scene = await countedSlots(t, { authorize: () => decide() });
  t.is((await call(scene.port, 'GET', one)).status, 403);
  decide = () => {
    throw new Error('broken');
  };
  t.is((await call(scene.port, 'GET', one)).status, 500);
  decide = () => true;
  await allFree(t, scene);
});

for (const part of ['authenticate', 'authorize'] as const) {
  test(`a request whose ${part} call never settles, or settles after the deadline, releases its slot`, async (t) => {
    const late: (() => void)[] = [];
    let slow = true;
    const settle = <T>(value: T) => (slow ? new Promise<T>((resolve) => late.push(() => resolve(value))) : value);
    const scene = await countedSlots(
      t,
      part === 'authenticate' ? { authenticate: () => settle(jane) } : { authorize: () => settle(true) },
    );
    const { port, clock, registry } = scene;
    let answers = 0;
    const counted = async (reply: ReturnType<typeof call>) => {
      t.is((await reply).status, 504);
      answers += 1;
    };
    const running = [counted(call(port, 'GET', one)), counted(call(port, 'POST', all, { body: '{}' }))];
    await until(() => late.length === 2, 'both requests wait');
    // A user is authenticated before the turn of the request, at which the check of its deadline begins.
    await until(() => {
      clock.advance(61_000);
      return answers === 2;
    }, 'both requests are answered');
    await Promise.all(running);
    late[0]?.();
    slow = false;
    await allFree(t, scene);
    t.is(
      registry.service(configMap).calls.filter(({ operation }) => operation === 'get').length,
      1,
      'the late one is not run',
    );
  });
}

for (const [messages, options] of Object.entries({ 'messages of its own': http2ServerOptions, "Node's messages": {} }))
  test(`over HTTP/2 with ${messages} a body that is incomplete at the deadline ends its stream and no other`, async (t) => {
    const scene = await countedSlots(t);
    const server = createHttp2Server(options, (request, response) =>
      scene.api.listener(request as never, response as never),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    t.teardown(() => {
      session.destroy();
      server.close();
    });
    const stream = session.request(
      { ':method': 'POST', ':path': all, 'content-type': 'application/json' },
      { endStream: false },
    );
    let status: unknown;
    let closed = false;
    stream.on('response', (headers) => {
      status = headers[':status'];
    });
    stream.on('close', () => {
      closed = true;
    });
    stream.on('error', () => {});
    stream.resume();
    stream.write('{');
    await scene.admitted();
    scene.clock.advance(35_000);
    await until(() => closed, 'the stream is closed');
    t.is(status, 504);
    t.false(session.closed);
    await allFree(t, scene);
  });

test('draining ends at the deadline of a request whose body is incomplete', async (t) => {
  const { port, clock, api, admitted } = await countedSlots(t);
  send(t, port, halfPost);
  await admitted();
  let drained = false;
  void api.drain().then(() => {
    drained = true;
  });
  clock.advance(35_000);
  await until(() => drained, 'nothing runs any more');
  t.true(drained);
});
