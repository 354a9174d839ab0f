import { configMap, leastConfigMapFrame, requestsOf, sharedStreams } from '../fixtures.ts';
import type { LoadResult, LoadTarget } from '../load/protocol.ts';
import { type BenchOptions, namedObjects as named } from '../options.ts';
import { benchToken, type PeerServer } from './start-peer.ts';

/** A scenario on one server: slices that are measured between `open` and `close`. */
export interface PeerRun {
  slice(): Promise<LoadResult>;
  close?(): Promise<void>;
}

/** What is asked of every server in turn. */
export interface PeerScenario {
  readonly name: string;
  readonly what: string;
  open(server: PeerServer, options: BenchOptions): Promise<PeerRun>;
}

const path = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const clients = 64;
/** Bodies that differ, so that not all objects are alike. */
const bodies = 100;
const listClients = 2;
const fillStep = 1_000;
/** Few: a server that has just started compiles its code, and rejects what waits too long with 429. */
const fillClients = 8;

const { request, patchRequest } = requestsOf(benchToken);

const patch = (name: string, namespace = 'bench'): string => patchRequest(`${path(namespace)}/${name}`);

const nameOf = (index: number): string => `object-${index}`;
const inTurn = (make: (name: string) => string): string[] =>
  Array.from({ length: named }, (_, index) => make(nameOf(index)));
const differing = (make: () => string): string[] => Array.from({ length: bodies }, make);

/** Creates the objects that exist from the beginning: some with names that requests know. */
export async function fillPeer({ load, port }: PeerServer, objects: number): Promise<void> {
  const create = { port, tls: true, connections: fillClients };
  const known = inTurn((name) => request('POST', path('bench'), configMap(name)));
  await load.requests({ ...create, count: named, requests: known });
  const others = differing(() => request('POST', path('bench'), configMap('filler-{n}')));
  // A job has a time limit, which is not one of the slowest server with all objects.
  for (let left = objects - named; left > 0; left -= fillStep)
    await load.requests({ ...create, count: Math.min(left, fillStep), requests: others });
  const watched = request('POST', path('watched'), configMap('watched'));
  await load.requests({ ...create, connections: 1, count: 1, requests: [watched] });
}

/** A scenario of requests, over both versions of HTTP. */
function requestScenario(
  name: string,
  what: string,
  requests: () => readonly string[],
  connections = clients,
): readonly PeerScenario[] {
  const over = (label: string, streams?: number): PeerScenario => ({
    name: `${name} ${label}`,
    what: `${what}; ${connections} ${streams === undefined ? 'connections' : 'streams of one connection'}`,
    open: async ({ load, port }, { sliceMs }) => {
      const target: LoadTarget = { port, tls: true, ...(streams === undefined ? {} : { streams }) };
      const all = requests();
      return { slice: () => load.requests({ ...target, connections, durationMs: sliceMs, requests: all }) };
    },
  });
  return [over('HTTP/1.1'), over('HTTP/2', connections)];
}

const watch = request('GET', `${path('watched')}?watch=1`);

/** Watchers that stay for all slices. */
function watchScenario(
  name: string,
  what: string,
  watchers: (options: BenchOptions) => number,
  slice: (server: PeerServer, target: LoadTarget, options: BenchOptions) => Promise<LoadResult>,
): readonly PeerScenario[] {
  const over = (label: string, streams?: number): PeerScenario => ({
    name: `${name} ${label}`,
    what: `${what}; ${streams === undefined ? 'a connection for each watcher' : `${streams} watchers on a connection`}`,
    open: async (server, options) => {
      const target: LoadTarget = { port: server.port, tls: true, ...(streams === undefined ? {} : { streams }) };
      try {
        await server.load.watch({ ...target, watchers: watchers(options), stalled: 0, request: watch });
      } catch (error) {
        await server.load.unwatch();
        throw error;
      }
      return { slice: () => slice(server, target, options), close: () => server.load.unwatch() };
    },
  });
  return [over('HTTP/1.1'), over('HTTP/2', sharedStreams)];
}

const perSecond = 200;

export const peerScenarios: readonly PeerScenario[] = [
  ...requestScenario('get', 'GET of one ConfigMap of 1.2 KB', () =>
    inTurn((name) => request('GET', `${path('bench')}/${name}`)),
  ),
  ...requestScenario('create', 'POST of a ConfigMap', () =>
    differing(() => request('POST', path('made'), configMap('made-{n}'))),
  ),
  ...requestScenario('put', 'PUT of a ConfigMap without resourceVersion, each request to another object', () =>
    inTurn((name) => request('PUT', `${path('bench')}/${name}`, configMap(name))),
  ),
  ...requestScenario('patch', 'merge patch of an annotation, each request to another object', () =>
    inTurn((name) => patch(name)),
  ),
  ...requestScenario('patch one', 'merge patch of an annotation of one object', () => [patch(nameOf(0))], 16),
  ...requestScenario(
    'list',
    'list of all objects of the namespace, without resourceVersion',
    () => [request('GET', path('bench'))],
    listClients,
  ),
  ...requestScenario(
    'gzip list',
    'the same with Accept-Encoding: gzip',
    () => [request('GET', path('bench'), undefined, { 'Accept-Encoding': 'gzip' })],
    listClients,
  ),
  ...watchScenario(
    'watch',
    'one patch after the other, each delivered to all watchers before the next, per delivery, the patches included',
    ({ watchers }) => watchers,
    ({ load }, target, { events }) =>
      load.fanOut({ ...target, request: patch('watched', 'watched'), events, burst: 1, bytes: leastConfigMapFrame }),
  ),
  ...watchScenario(
    'paced',
    `${perSecond} patches per second to a fifth of the watchers, per delivery, the patches included`,
    ({ watchers }) => Math.ceil(watchers / 5),
    ({ load }, target, { sliceMs }) =>
      load.paced({
        ...target,
        request: patch('watched', 'watched'),
        events: Math.ceil((perSecond * sliceMs) / 1000),
        perSecond,
      }),
  ),
];
