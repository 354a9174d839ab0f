import { labelSelectorOf, statusErrors } from '@keelson/core';
import { ControllerRevision, DaemonSet } from '@keelson/kinds';
import test from 'ava';
import { writeStatus } from '../src/workload/object-status.ts';
import { deleteOldRevisions, syncHistory } from '../src/workload/revisions.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

const selector = { matchLabels: { app: 'd' } };
const template = (image: string) => ({
  metadata: { labels: { app: 'd' } },
  spec: { containers: [{ name: 'c', image }] },
});
const owner = (more: Partial<DaemonSet> = {}): DaemonSet => ({
  metadata: { name: 'd', namespace: 'default', uid: 'd' },
  spec: { selector, template: template('1') },
  ...more,
});

function revision(name: string, number: number, image: string): ControllerRevision {
  const reference = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true };
  return {
    metadata: { name, namespace: 'default', uid: name, labels: { app: 'd' }, ownerReferences: [reference] },
    data: { spec: { template: { $patch: 'replace', ...template(image) } } },
    revision: number,
  };
}

async function synced(
  found: readonly ControllerRevision[],
  more: Partial<DaemonSet> = {},
  taken: readonly (ControllerRevision | undefined)[] = [],
) {
  const answers = [...taken];
  let isTaken = false;
  const { client, writes, bodies } = recordedWrites((request) => {
    if (request.startsWith('get')) return answers.shift();
    isTaken = request.startsWith('create') && answers.length > 0;
    if (isTaken) throw statusErrors.alreadyExists({ group: 'apps', resource: 'controllerrevisions' } as never, 'x');
    return undefined;
  });
  const run = runOverObjects([[ControllerRevision, found]], client);
  const object = owner(more);
  const history = await syncHistory({
    run,
    kind: DaemonSet,
    owner: object,
    selector: labelSelectorOf(selector),
    hashLabel: 'h',
  });
  return { ...history, writes, bodies };
}

test('a new template gets the next revision; one of an earlier revision gets that one again, with the next number', async (t) => {
  const first = await synced([]);
  t.is(first.current.revision, 1);
  t.regex(first.current.metadata?.name ?? '', /^d-[a-z0-9]+$/);
  t.is(first.current.metadata?.labels?.['h'], first.current.metadata?.name?.slice(2));
  t.is(first.collisionCount, undefined);
  const next = await synced([revision('b', 7, '3'), revision('a', 4, '2')]);
  t.deepEqual(
    next.revisions.map(({ revision: number }) => number),
    [4, 7, 8],
  );
  const same = await synced([revision('a', 4, '2'), revision('b', 7, '1')]);
  t.deepEqual([same.current.metadata?.name, same.writes], ['b', []]);
  const back = await synced([revision('a', 4, '1'), revision('b', 7, '2')]);
  t.deepEqual(back.writes, ['patch ControllerRevision a']);
  t.is((back.bodies[0] as ControllerRevision).revision, 8);
});

test('the name of a revision of another object or template leads to another name', async (t) => {
  const plain = (await synced([])).current.metadata?.name;
  const foreign = { ...revision('x', 1, '1'), metadata: { name: 'x' } };
  const twice = await synced([], {}, [foreign, revision('x', 1, 'other')]);
  t.is(twice.collisionCount, 2);
  t.not(twice.current.metadata?.name, plain);
  const status = { collisionCount: 2 } as NonNullable<DaemonSet['status']>;
  t.is(twice.current.metadata?.name, (await synced([], { status })).current.metadata?.name);
  const adopted = await synced([], {}, [revision('x', 3, '1')]);
  t.deepEqual([adopted.current.metadata?.name, adopted.collisionCount], ['x', undefined]);
});

test('unused revisions beyond the limit are deleted, the first ones first', async (t) => {
  const deleted = async (limit: number, failure?: Error) => {
    const { client, writes } = recordedWrites(() => {
      if (failure !== undefined) throw failure;
      return undefined;
    });
    const revisions = ['a', 'b', 'c', 'd'].map((name, i) => revision(name, i, name));
    await deleteOldRevisions(runOverObjects([], client), revisions, limit, ({ metadata }) => metadata?.name === 'b');
    return writes.map((write) => write.slice(-1)).join();
  };
  t.deepEqual([await deleted(0), await deleted(1), await deleted(3), await deleted(9)], ['a,c,d', 'a,c', '', '']);
  await t.notThrowsAsync(deleted(0, statusErrors.notFound({ group: 'apps', resource: 'x' } as never, 'a')));
  await t.throwsAsync(deleted(0, new Error('no')), { message: 'no' });
});

test('a status is written when it or the annotations change', async (t) => {
  const status = { numberReady: 1 } as NonNullable<DaemonSet['status']>;
  const written = async (next: object, annotations?: Record<string, string>) => {
    const { client, writes, bodies } = recordedWrites();
    const object = owner({ metadata: { ...owner().metadata, annotations: { a: '1' } }, status });
    await writeStatus(runOverObjects([], client), DaemonSet, object, next as typeof status, annotations);
    const body = bodies[0] as DaemonSet | undefined;
    return writes.length === 0 ? undefined : [body?.status?.numberReady, body?.metadata?.annotations?.['a']];
  };
  t.is(await written({ numberReady: 1 }), undefined);
  t.is(await written({ numberReady: 1 }, { a: '1' }), undefined);
  t.deepEqual(await written({ numberReady: 2 }), [2, '1']);
  t.deepEqual(await written({ numberReady: 1 }, { a: '2' }), [1, '2']);
  t.deepEqual(await written({ numberReady: 2 }, { a: '1' }), [2, '1']);
});
