import { formatTime, statusErrors } from '@keelson/core';
import { type Pod, ReplicaSet, Service } from '@keelson/kinds';
import test from 'ava';
import {
  hostnameOf,
  labelsOfEndpoints,
  lastChange,
  podsOf,
  servicesOf,
  targetPortOf,
} from '../src/endpoints/pod-endpoints.ts';
import { rankedForDeletion } from '../src/replicaset/deletion-rank.ts';
import { isObserved } from '../src/workload/object-status.ts';
import { isAvailable, isTerminating, untilAvailable } from '../src/workload/pod-state.ts';
import { createPod, deletePod, inParallel, podOf, slowStart } from '../src/workload/pod-writes.ts';
import { atRevision } from '../src/workload/revisions.ts';
import { canonicalJson, sameJson, shortHash, templateText, withSortedKeys } from '../src/workload/template.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

const now = Date.UTC(2026, 0, 2);
const ago = (seconds: number) => formatTime(new Date(now - seconds * 1000));

interface Traits {
  readonly node?: string;
  readonly phase?: string;
  /** Seconds since the pod is ready. */
  readonly ready?: number;
  readonly cost?: string;
  readonly restarts?: number;
  readonly created?: number;
  readonly deleted?: boolean;
  readonly labels?: Record<string, string>;
  readonly spec?: Partial<Pod['spec']>;
  readonly status?: Pod['status'];
}

function pod(name: string, traits: Traits = {}): Pod {
  const { node = 'n', phase = 'Running', ready, cost, restarts, created = 3600, deleted, labels = {} } = traits;
  return {
    metadata: {
      ...{ name, namespace: 'default', uid: name, labels, creationTimestamp: ago(created) },
      ...(cost === undefined ? {} : { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } }),
      ...(deleted ? { deletionTimestamp: ago(0) } : {}),
    },
    spec: { containers: [], nodeName: node, ...traits.spec },
    status: {
      phase,
      conditions: ready === undefined ? [] : [{ type: 'Ready', status: 'True', lastTransitionTime: ago(ready) }],
      ...(restarts === undefined ? {} : { containerStatuses: [{ name: 'c', restartCount: restarts }] as never }),
      ...traits.status,
    },
  };
}

for (const [title, first, second] of [
  ['without a node', { node: '' }, {}],
  ['pending', { phase: 'Pending', ready: 10 }, {}],
  ['of an unknown phase', { phase: 'Unknown' }, {}],
  ['not ready', {}, { ready: 10 }],
  ['not available', { ready: 10 }, { ready: 40 }],
  ['of a lower cost', { ready: 900, cost: '-5' }, { ready: 900 }],
  ['of a lower cost than another', { ready: 900, cost: '9' }, { ready: 900, cost: '10' }],
  ['of an invalid cost, which is 0', { ready: 900, cost: '01', restarts: 1 }, { ready: 900, cost: '1' }],
  ['on a node with more pods', { ready: 900, node: 'full' }, { ready: 900 }],
  ['ready for a shorter time', { ready: 100 }, { ready: 900 }],
  ['restarted more often', { ready: 900, restarts: 3 }, { ready: 900, restarts: 1 }],
  ['younger', { ready: 40, created: 50 }, { ready: 40, created: 500 }],
] as [string, Traits, Traits][]) {
  test(`a pod that is ${title} is deleted first`, (t) => {
    const options = { related: [pod('x', { node: 'full' }), pod('y', { node: 'full' })], minReadySeconds: 30, now };
    const names = (...pods: Pod[]) => rankedForDeletion(pods, options).map(({ metadata }) => metadata?.name);
    t.deepEqual(names(pod('b', second), pod('z', first)), ['z', 'b']);
    t.deepEqual(names(pod('z', first), pod('b', second)), ['z', 'b']);
  });
}

test('pods of about the same age are deleted in the order of their uids; ended ones do not fill a node', (t) => {
  const names = (related: readonly Pod[], ...pods: Pod[]) =>
    rankedForDeletion(pods, { related, minReadySeconds: 0, now }).map(({ metadata }) => metadata?.name);
  t.deepEqual(names([], pod('b', { ready: 900 }), pod('a', { ready: 890 })), ['a', 'b']);
  t.deepEqual(names([], pod('b', { created: 900 }), pod('a', { created: 890 })), ['a', 'b']);
  t.deepEqual(names([], pod('b'), pod('a')), ['a', 'b']);
  const ended = [pod('x', { node: 'm', phase: 'Failed' }), pod('y', { node: 'm', deleted: true })];
  t.deepEqual(names(ended, pod('b', { node: 'm' }), pod('a')), ['a', 'b']);
});

test('a pod is available when it has been ready for minReadySeconds', (t) => {
  t.false(isAvailable(pod('a'), 0, now));
  t.true(isAvailable(pod('a', { ready: 0 }), 0, now));
  t.false(isAvailable(pod('a', { ready: 29 }), 30, now));
  t.true(isAvailable(pod('a', { ready: 30 }), 30, now));
  t.false(isAvailable(pod('a', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }), 30, now));
  const pods = [pod('a', { ready: 10 }), pod('b', { ready: 25 }), pod('c', { ready: 30 }), pod('d')];
  t.is(untilAvailable(pods, 30, now), 5000);
  t.is(untilAvailable(pods.slice(2), 30, now), undefined);
  t.deepEqual([isTerminating(pod('a', { deleted: true })), isTerminating(pod('a'))], [true, false]);
  t.false(isTerminating(pod('a', { deleted: true, phase: 'Succeeded' })));
});

test('a pod of a template has its metadata and an owner; a long name of the owner is not followed by a dash', (t) => {
  const template = {
    metadata: { labels: { a: '1' }, annotations: { b: '2' }, finalizers: ['x/y'] },
    spec: { containers: [] },
  };
  const made = podOf(template, ReplicaSet, { metadata: { name: 'set', uid: 'u' } });
  t.like(made.metadata, { generateName: 'set-', labels: { a: '1' }, annotations: { b: '2' }, finalizers: ['x/y'] });
  t.like(made.metadata?.ownerReferences?.[0], { kind: 'ReplicaSet', name: 'set', uid: 'u', controller: true });
  const plain = podOf({ spec: { containers: [] } }, ReplicaSet, { metadata: { name: 'n'.repeat(253), uid: 'u' } });
  t.is(plain.metadata?.generateName, 'n'.repeat(253));
  t.false('annotations' in (plain.metadata ?? {}) || 'finalizers' in (plain.metadata ?? {}));
});

test('writes of pods are reported as events; pods that are gone and namespaces that end are no failures', async (t) => {
  const owner = { metadata: { name: 'set', namespace: 'default' } };
  const pods = { group: '', resource: 'pods' } as never;
  const outcome = async (write: typeof createPod, failure?: Error) => {
    const { client } = recordedWrites(() => {
      if (failure !== undefined) throw failure;
      return undefined;
    });
    const run = runOverObjects([], client);
    const message = await write(run, owner, pod('p')).then(
      () => undefined,
      (error: Error) => error.message,
    );
    return [...run.events, ...(message === undefined ? [] : [`thrown: ${message}`])];
  };
  t.deepEqual(await outcome(createPod), ['Normal SuccessfulCreate: Created pod: p']);
  t.deepEqual(await outcome(deletePod), ['Normal SuccessfulDelete: Deleted pod: p']);
  t.deepEqual(await outcome(createPod, new Error('no')), ['Warning FailedCreate: Error creating: no', 'thrown: no']);
  t.deepEqual(await outcome(deletePod, new Error('no')), ['Warning FailedDelete: Error deleting: no', 'thrown: no']);
  t.deepEqual(await outcome(deletePod, statusErrors.notFound(pods, 'p')), []);
  const causes = [{ reason: 'NamespaceTerminating', message: '', field: '' }];
  t.deepEqual(await outcome(createPod, statusErrors.forbidden(pods, 'p', 'it ends', causes)), []);
  t.is((await outcome(createPod, statusErrors.forbidden(pods, 'p', 'quota'))).length, 2);
});

test('items are processed in growing batches until one fails', async (t) => {
  const started: number[] = [];
  const items = Array.from({ length: 10 }, (_, i) => i);
  let running = 0;
  const batches: number[] = [];
  await slowStart(items, async () => {
    running += 1;
    await Promise.resolve();
    if (running > 0) batches.push(running);
    running = 0;
  });
  t.deepEqual(batches, [1, 2, 4, 3]);
  const failing = slowStart(items, async (item) => {
    started.push(item);
    if (item === 1) throw new Error('full');
  });
  await t.throwsAsync(failing, { message: 'full' });
  t.deepEqual(started, [0, 1, 2]);
  await t.notThrowsAsync(inParallel([], () => Promise.reject(new Error('never'))));
});

test('templates are compared without their hash label and time of creation, in any order of the keys', (t) => {
  const template = (labels: object, more: object = {}) =>
    templateText({ metadata: { labels, ...more }, spec: { containers: [] } } as never, 'hash');
  t.is(template({ a: '1', hash: 'x' }, { creationTimestamp: null }), template({ a: '1' }));
  t.not(template({ a: '1' }), template({ a: '2' }));
  t.is(
    canonicalJson({ b: [1, { d: null, c: undefined }], a: 10n ** 20n }),
    '{"a":"100000000000000000000","b":[1,{"d":null}]}',
  );
  t.is(canonicalJson(undefined), 'null');
  t.true(sameJson({ a: 1, b: 2 }, { b: 2, a: 1 }));
  t.false(sameJson({ a: 1 }, { a: 2 }));
  t.is(JSON.stringify(withSortedKeys([{ b: 1, a: { d: 1, c: null } }])), '[{"a":{"c":null,"d":1},"b":1}]');
  t.not(shortHash('a'), shortHash('b'));
  const of = { metadata: { name: 'd' }, spec: { template: { spec: { containers: [] } } } };
  const data = { spec: { template: { $patch: 'replace', metadata: { labels: { v: '1' } } } } };
  t.deepEqual(atRevision(of, { revision: 1, data } as never).spec.template as object, {
    metadata: { labels: { v: '1' } },
  });
  t.is(atRevision(of, { revision: 1 }), of);
});

function service(spec: Partial<Service['spec']>, labels?: Record<string, string>): Service {
  return {
    metadata: { name: 'web', namespace: 'default', creationTimestamp: ago(9000), ...(labels ? { labels } : {}) },
    spec,
  };
}

test('the endpoints of a service are the selected pods with an address that have not ended', (t) => {
  const web = service({ selector: { app: 'web' } });
  const at = (name: string, phase: string, podIP?: string, app = 'web') =>
    pod(name, { phase, labels: { app }, status: { phase, ...(podIP === undefined ? {} : { podIP }) } });
  const pods = [
    at('a', 'Running', '10.0.0.1'),
    at('b', 'Failed', '10.0.0.2'),
    at('c', 'Succeeded', '10.0.0.3'),
    at('d', 'Pending'),
    at('e', 'Running', '10.0.0.5', 'other'),
    at('f', 'Pending', '10.0.0.6'),
  ];
  t.deepEqual(
    podsOf(web, pods).map(({ metadata }) => metadata?.name),
    ['a', 'f'],
  );
});

test('a target port is a number or the name of a port of the same protocol, also of a restartable init container', (t) => {
  const of = pod('a', {
    spec: {
      containers: [
        {
          name: 'c',
          image: 'i',
          ports: [
            { name: 'dns', containerPort: 53, protocol: 'UDP' },
            { name: 'web', containerPort: 80 },
          ],
        },
      ],
      initContainers: [
        { name: 'once', image: 'i', ports: [{ name: 'init', containerPort: 1 }] },
        { name: 'always', image: 'i', restartPolicy: 'Always', ports: [{ name: 'side', containerPort: 2 }] },
      ],
    },
  });
  const port = (targetPort?: string | number, protocol?: string) =>
    targetPortOf(of, {
      port: 8080,
      ...(targetPort === undefined ? {} : { targetPort }),
      ...(protocol ? { protocol } : {}),
    });
  t.deepEqual([port(), port(9), port('web'), port('side')], [8080, 9, 80, 2]);
  t.deepEqual(
    [port('dns'), port('dns', 'UDP'), port('web', 'UDP'), port('init')],
    [undefined, 53, undefined, undefined],
  );
});

test('a pod has a name in a headless service of its subdomain', (t) => {
  const web = service({ clusterIP: 'None' }, { app: 'x', 'service.kubernetes.io/headless': 'old' });
  const named = (spec: Partial<Pod['spec']>) => hostnameOf(pod('a', { spec }), web);
  t.is(named({ subdomain: 'web', hostname: 'h' }), 'h');
  t.is(named({ subdomain: 'other', hostname: 'h' }), undefined);
  t.is(named({ subdomain: 'web', hostname: '' }), undefined);
  t.is(named({ subdomain: 'web' }), undefined);
  t.deepEqual(labelsOfEndpoints(web), { app: 'x', 'service.kubernetes.io/headless': '' });
  t.deepEqual(labelsOfEndpoints({ ...web, spec: {} }), { app: 'x' });
});

test('a change of a pod concerns the services that select it or selected it before', (t) => {
  const named = (name: string, spec: Partial<Service['spec']>) => ({
    ...service(spec),
    metadata: { name, namespace: 'default' },
  });
  const services = [
    named('a', { selector: { app: 'a' } }),
    named('b', { selector: { app: 'b' } }),
    named('all', { selector: {} }),
    named('alias', { type: 'ExternalName', selector: { app: 'a' } }),
  ];
  const { read } = runOverObjects([[Service, services]]);
  const [a, b] = [pod('p', { labels: { app: 'a' } }), pod('p', { labels: { app: 'b' } })];
  t.deepEqual(servicesOf(a, undefined, read), ['default/a']);
  t.deepEqual(servicesOf(a, b, read), ['default/a', 'default/b']);
  t.deepEqual(servicesOf(a, { ...a }, read), []);
  t.deepEqual(servicesOf(pod('p', { labels: { app: 'a' }, ready: 1 }), a, read), ['default/a']);
  const later = lastChange(services[0] as Service, [pod('p', { ready: 5 }), pod('q', { ready: 50, created: 1 })]);
  t.is(later, ago(5), 'the creation of a pod that is not being deleted does not count');
  t.is(lastChange(service({}), []), ago(9000));
  t.is(lastChange(service({}), [pod('q', { ready: 50, created: 1, deleted: true })]), ago(1));
});

test('an object is observed when its status is of its generation', (t) => {
  const observed = (generation: number, observedGeneration?: number) =>
    isObserved({
      metadata: { generation },
      ...(observedGeneration === undefined ? {} : { status: { observedGeneration } }),
    });
  t.deepEqual([observed(1), observed(1, 1), observed(2, 1), observed(1, 2)], [false, true, false, true]);
  t.true(isObserved({}));
});
