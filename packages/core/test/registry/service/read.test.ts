import { type ClientWatchEvent, internalContext, isStatusError, type KubeObject } from '@keelson/core';
import { test } from './both-forms.ts';
import { Cart, Gadget, kinds, Namespace, OldCart, Open, Ticket } from './fixtures.ts';
import { createPlane, everything, failure } from './harness.ts';

const names = (list: { readonly items: readonly KubeObject[] }) =>
  list.items.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);

async function withTickets(t: Parameters<typeof createPlane>[0], count = 5) {
  const plane = await createPlane(t);
  const tickets = plane.client.resource(Ticket);
  for (let i = 0; i < count; i++) {
    await tickets.create({
      metadata: { name: `t${i}`, namespace: i % 2 === 0 ? 'a' : 'b', labels: { i: String(i) } },
      count: i,
    });
  }
  return { plane, tickets };
}

test('get: impossible names and foreign namespaces are a plain 404', async (t) => {
  const { tickets } = await withTickets(t);
  for (const [namespace, name] of [
    ['a', 'ghost'],
    ['b', 't0'],
    ['a', '../b/t1'],
    ['a/t0', ''],
    ['', 'a/t0'],
    ['a', 'x'.repeat(5000)],
    ['a', '\0'],
    ['../a', 't0'],
  ] as const) {
    const status = await failure(() => tickets.namespace(namespace).get(name));
    t.true(status.code === 404 || status.code === 400, `${namespace}|${name.slice(0, 9)}`);
  }
  t.is((await failure(() => tickets.get('a/t0'))).code, 400);
});

test('get by resourceVersion: 0, N, the future and nonsense', async (t) => {
  const { plane, tickets } = await withTickets(t);
  const inA = tickets.namespace('a');
  const current = await inA.get('t0');
  t.deepEqual(await inA.get('t0', { resourceVersion: '0' }), current);
  t.deepEqual(await inA.get('t0', { resourceVersion: '1' }), current);
  t.is((await failure(() => inA.get('t0', { resourceVersion: 'new' }))).code, 400);
  const future = failure(() => inA.get('t0', { resourceVersion: '999999' }));
  for (let i = 0; i < 10; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    plane.clock.advance(1000);
  }
  const status = await future;
  t.like(status, { code: 504, reason: 'Timeout' });
  t.regex(status.message ?? '', /^Timeout: Too large resource version: 999999, current: \d+$/);
  t.is(status.details?.retryAfterSeconds, 1);
});

test('export clears what belongs to this cluster, exact keeps the namespace', async (t) => {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  const created = await gadgets.create({ metadata: { generateName: 'g-' }, spec: { replicas: 4 } } as never);
  await gadgets.patchSubresource(created.metadata?.name ?? '', 'status', 'merge', { status: { phase: 'x' } });
  const exported = async (exact: boolean) => {
    const target = { namespace: 'n', name: created.metadata?.name ?? '' };
    const answer = await plane
      .service(Gadget)
      .get(internalContext(), target, { export: true, exact, resourceVersion: '' });
    return 'object' in answer ? answer.object : undefined;
  };
  t.deepEqual(await exported(false), {
    kind: 'Gadget',
    apiVersion: 'toys.example.com/v1',
    metadata: { generateName: 'g-', generation: 1 },
    spec: { replicas: 4 },
    status: {},
  } as never);
  t.like((await exported(true)) as KubeObject, { metadata: { namespace: 'n' } });
});

test('lists: order, namespaces, selectors, the empty list', async (t) => {
  const { plane, tickets } = await withTickets(t);
  const list = await tickets.list();
  t.like(list, {
    kind: 'TicketList',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(await plane.store.currentRevision()) },
  });
  t.deepEqual(names(list), ['a/t0', 'a/t2', 'a/t4', 'b/t1', 'b/t3']);
  t.deepEqual(names(await tickets.namespace('b').list()), ['b/t1', 'b/t3']);
  t.deepEqual(names(await tickets.list({ labelSelector: 'i in (1,2)' })), ['a/t2', 'b/t1']);
  t.deepEqual(names(await tickets.list({ fieldSelector: 'metadata.namespace=b,metadata.name!=t1' })), ['b/t3']);
  t.deepEqual(names(await tickets.namespace('a').list({ fieldSelector: 'metadata.name=t2' })), ['a/t2']);
  t.deepEqual(names(await tickets.namespace('ghost').list()), []);
  t.deepEqual(names(await tickets.namespace('a/').list()), []);
  const carts = plane.client.resource(OldCart);
  await plane.client.resource(Cart).create({ metadata: { name: 'c', namespace: 'n' }, spec: { load: 1 } } as never);
  t.like(await carts.list(), { kind: 'CartList', apiVersion: 'old.example.com/v1beta1' });
  t.like((await carts.list()).items[0], { apiVersion: 'old.example.com/v1beta1', spec: { weight: 1 } } as never);
});

test('chunks show one state; the token belongs to its list', async (t) => {
  const { tickets } = await withTickets(t);
  const first = await tickets.list({ limit: 2 });
  t.deepEqual([names(first), first.metadata.remainingItemCount], [['a/t0', 'a/t2'], 3]);
  await tickets.namespace('a').delete('t4');
  await tickets.create({ metadata: { name: 't9', namespace: 'b' }, count: 1 });
  const token = first.metadata.continue ?? '';
  const second = await tickets.list({ limit: 2, continue: token });
  t.deepEqual(names(second), ['a/t4', 'b/t1']);
  t.is(second.metadata.resourceVersion, first.metadata.resourceVersion);
  const third = await tickets.list({ limit: 2, continue: second.metadata.continue ?? '' });
  t.deepEqual([names(third), third.metadata.continue], [['b/t3'], undefined]);
  for (const run of [
    () => tickets.list({ continue: token, labelSelector: 'i' }),
    () => tickets.list({ continue: token, fieldSelector: 'metadata.name!=x' }),
    () => tickets.namespace('a').list({ continue: token }),
  ]) {
    t.like(await failure(run), { code: 400, reason: 'BadRequest' });
  }
  for (const bad of ['garbage', '!', `${token}x`, token.slice(1), 'x'.repeat(100_000), '__proto__']) {
    t.like(await failure(() => tickets.list({ continue: bad })), { code: 410, reason: 'Expired' }, bad.slice(0, 20));
  }
  const selected = await tickets.list({ limit: 1, labelSelector: 'i' });
  t.is(selected.metadata.remainingItemCount, undefined);
});

test('an expired continue token is 410 with a token that continues at the latest state', async (t) => {
  const { plane, tickets } = await withTickets(t);
  const first = await tickets.list({ limit: 2 });
  const follow = async () => {
    const status = await failure(() => tickets.list({ limit: 2, continue: first.metadata.continue ?? '' }));
    t.like(status, { code: 410, reason: 'Expired' });
    t.regex(status.message ?? '', /^The provided continue parameter is too old to display a consistent list result\./);
    return tickets.list({ continue: status.metadata.continue ?? '' });
  };
  await tickets.namespace('a').delete('t4');
  await plane.store.compact(await plane.store.currentRevision());
  // The cache still has the state in memory, whatever the store has forgotten.
  if (t.context.form === 'direct') t.deepEqual(names(await follow()), ['b/t1', 'b/t3'], 'compacted');
  plane.clock.advance(6 * 60_000);
  for (let i = 0; i < 5; i++) await tickets.create({ metadata: { name: `t${i}`, namespace: 'c' }, count: 0 });
  t.deepEqual(names(await follow()), ['c/t0', 'c/t1', 'c/t2', 'c/t3', 'c/t4'], 'out of its time');
});

test('exact reads of the past, and 410 once it is compacted', async (t) => {
  const { plane, tickets } = await withTickets(t);
  const past = String((await plane.store.currentRevision()) - 1);
  t.is((await tickets.list({ resourceVersion: past, resourceVersionMatch: 'Exact' })).items.length, 4);
  t.is((await tickets.list({ resourceVersion: past, limit: 10 })).items.length, 4);
  t.is((await tickets.list({ resourceVersion: past })).items.length, 5);
  await plane.store.compact(await plane.store.currentRevision());
  t.like(await failure(() => tickets.list({ resourceVersion: past, resourceVersionMatch: 'Exact' })), {
    code: 410,
    message: 'The resourceVersion for the provided list is too old.',
  });
  t.is((await failure(() => tickets.list({ resourceVersionMatch: 'Exact' }))).code, 422);
});

async function take<T extends KubeObject>(
  events: AsyncIterable<ClientWatchEvent<T>>,
  count: number,
): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events) {
    seen.push(`${event.type} ${event.object.metadata?.name ?? ''}`);
    if (seen.length === count) break;
  }
  return seen;
}

test('watch: state first or changes only, by resourceVersion', async (t) => {
  const { plane, tickets } = await withTickets(t, 2);
  const start = String(await plane.store.currentRevision());
  t.deepEqual(await take(tickets.watch(), 2), ['ADDED t0', 'ADDED t1']);
  t.deepEqual(await take(tickets.watch({ resourceVersion: '0' }), 2), ['ADDED t0', 'ADDED t1']);
  const live = take(tickets.watch({ resourceVersion: start }), 3);
  await tickets.namespace('a').patch('t0', 'merge', { count: 5 });
  await tickets.namespace('a').delete('t0');
  await tickets.create({ metadata: { name: 'new', namespace: 'a' }, count: 1 });
  t.deepEqual(await live, ['MODIFIED t0', 'DELETED t0', 'ADDED new']);
  const again = await take(
    tickets.namespace('a').watch({ resourceVersion: start, fieldSelector: 'metadata.name=t0' }),
    2,
  );
  t.deepEqual(again, ['MODIFIED t0', 'DELETED t0']);
  const initial = tickets.watch({
    sendInitialEvents: true,
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: true,
  });
  t.deepEqual(await take(initial, 3), ['ADDED new', 'ADDED t1', 'BOOKMARK ']);
  t.is((await failure(() => take(tickets.watch({ sendInitialEvents: true }), 1))).code, 422);
  t.is((await failure(() => take(tickets.watch({ resourceVersion: 'x' }), 1))).code, 400);
});

test('watch: objects that begin or cease to match a selector are ADDED and DELETED events', async (t) => {
  const { plane, tickets } = await withTickets(t, 2);
  const resourceVersion = String(await plane.store.currentRevision());
  const events = take(tickets.watch({ resourceVersion, labelSelector: 'i=0' }), 4);
  const inA = tickets.namespace('a');
  await inA.patch('t0', 'merge', { count: 3 });
  await inA.patch('t0', 'merge', { metadata: { labels: { i: '7' } } });
  await inA.patch('t0', 'merge', { metadata: { labels: { i: '0' } } });
  await inA.delete('t0');
  t.deepEqual(await events, ['MODIFIED t0', 'DELETED t0', 'ADDED t0', 'DELETED t0']);
});

test('watch: one object by name, through the service', async (t) => {
  const { plane } = await withTickets(t);
  const watch = await plane.service(Ticket).watch(internalContext(), { namespace: 'a', name: 't2' }, everything);
  t.deepEqual(
    watch.read(10).map((event) => event.object.value().metadata?.name),
    ['t2'],
  );
  watch.close();
  const service = plane.service(Ticket);
  const status = await failure(() =>
    service.watch(
      internalContext(),
      { namespace: 'a', name: 't2' },
      { ...everything, fieldSelector: 'metadata.name=t0' },
    ),
  );
  t.is(status.code, 400);
});

test('watch: history that is gone is a thrown 410, at the start and later', async (t) => {
  const { plane, tickets } = await withTickets(t);
  await plane.store.compact(await plane.store.currentRevision());
  const error = await t.throwsAsync(() => take(tickets.watch({ resourceVersion: '2' }), 1));
  t.true(isStatusError(error, 'Expired'));
  t.is((error as { code?: number }).code, 410);
});

test('watch: events and bookmarks of shared storage have the requested version', async (t) => {
  const { client } = await createPlane(t);
  await client.resource(Cart).create({ metadata: { name: 'c', namespace: 'n' }, spec: { load: 1 } } as never);
  const watch = client
    .resource(OldCart)
    .watch({ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true });
  const seen: unknown[] = [];
  for await (const event of watch) {
    seen.push([event.type, event.object.apiVersion, (event.object as { spec?: unknown }).spec]);
    if (event.type === 'BOOKMARK') {
      t.is(event.object.metadata?.annotations?.['k8s.io/initial-events-end'], 'true');
      break;
    }
  }
  t.deepEqual(seen, [
    ['ADDED', 'old.example.com/v1beta1', { weight: 1 }],
    ['BOOKMARK', 'old.example.com/v1beta1', undefined],
  ]);
});

test('a watch ends without an error at its timeout, on abort, and when the caller stops reading', async (t) => {
  const { plane, tickets } = await withTickets(t, 1);
  const resourceVersion = String(await plane.store.currentRevision());
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const timed = take(tickets.watch({ resourceVersion, timeoutSeconds: 5 }), 9);
  await turn();
  plane.clock.advance(4_999);
  await tickets.create({ metadata: { name: 'late', namespace: 'a' }, count: 0 });
  await turn();
  plane.clock.advance(1);
  t.deepEqual(await timed, ['ADDED late']);
  const abort = new AbortController();
  const aborted = take(tickets.watch({ resourceVersion, signal: abort.signal }), 9);
  await turn();
  abort.abort();
  t.deepEqual(await aborted, ['ADDED late']);
  t.deepEqual(await take(tickets.watch({ signal: AbortSignal.abort() }), 9), []);
  const iterator = tickets
    .watch({ resourceVersion: String(await plane.store.currentRevision()) })
    [Symbol.asyncIterator]();
  const waiting = iterator.next();
  await turn();
  await iterator.return?.();
  t.true((await waiting).done);
  t.true((await iterator.next()).done);
});

test('a watch ends with an error when its storage stops', async (t) => {
  const { plane, tickets } = await withTickets(t, 1);
  const running = take(tickets.watch(), 9);
  await new Promise((resolve) => setImmediate(resolve));
  await plane.storages.stop();
  t.is((await failure(() => running)).code, 503);
});

test('discovery lists every registered kind with its storage, also after kinds are added and removed', async (t) => {
  const { client, registry } = await createPlane(t, { kinds: kinds.filter((kind) => kind !== Open) });
  const rows = await client.discover();
  t.deepEqual(
    rows.find((row) => row.group === 'old.example.com'),
    {
      group: 'old.example.com',
      version: 'v1beta1',
      resource: 'carts',
      kind: 'Cart',
      namespaced: true,
      verbs: OldCart.verbs,
      storage: { group: 'apps.example.com', resource: 'carts' },
    },
  );
  const before = registry.generation;
  const opens = client.resource(Open);
  t.like(await failure(() => opens.list()), { code: 404, message: 'the server could not find the requested resource' });
  registry.add(Open);
  t.true(registry.generation > before);
  await opens.create({ metadata: { name: 'o' } });
  t.throws(() => registry.add(Open), { message: /registered already/ });
  const service = registry.find({ group: 'custom.example.com', version: 'v1', resource: 'opens' });
  t.is(service, registry.find({ group: 'custom.example.com', version: 'v1', resource: 'opens' }));
  registry.remove(Open);
  registry.remove(Open);
  t.is(registry.generation, before + 2);
  t.false(registry.kinds().includes(Open));
  t.is((await failure(() => opens.list())).code, 404);
  t.is(registry.kinds()[0], Namespace);
});
