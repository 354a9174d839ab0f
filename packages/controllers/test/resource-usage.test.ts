import { type ApiClient, formatTime, labelSelectorOf } from '@keelson/core';
import { type autoscalingV2, Pod, type PodMetrics } from '@keelson/kinds';
import test from 'ava';
import { recommendedReplicas, type UsageQuery } from '../src/autoscaling/resource-usage.ts';
import { runOverObjects } from './support/run-over-objects.ts';

interface Member {
  /** What the container `main` uses; undefined: the pod has no sample. */
  readonly cpu?: string | undefined;
  readonly memory?: string;
  /** What the container `main` requests. */
  readonly request?: string;
  readonly phase?: string;
  readonly ready?: 'True' | 'False' | 'none';
  /** Seconds since the start, since the last change of Ready, and since the end of the sample. */
  readonly started?: number;
  readonly changed?: number;
  readonly sampled?: number;
  readonly spec?: Partial<Pod['spec']>;
  readonly metadata?: Pod['metadata'];
}

/** Pods of the label `app=web`, and what their samples recommend. */
async function recommend(members: readonly Member[], query: Partial<UsageQuery> = {}) {
  const copies: [typeof Pod, Pod[]] = [Pod, []];
  const options: unknown[] = [];
  const metrics: PodMetrics[] = [];
  const list = async (given: unknown) => {
    options.push(given);
    return { items: metrics, metadata: {} };
  };
  const client = { dynamic: () => ({ namespace: () => ({ list }) }) } as unknown as ApiClient;
  const run = runOverObjects([copies], client);
  const ago = (seconds: number) => formatTime(new Date(run.clock.now() - seconds * 1000));
  for (const [i, member] of members.entries()) {
    const { cpu, memory, request = '100m', phase = 'Running', ready = 'True', sampled = 0 } = member;
    const { started = 3600, changed = 3600 } = member;
    const name = `p-${i}`;
    const conditions = [{ type: 'Ready', status: ready, lastTransitionTime: ago(changed) }];
    copies[1].push({
      metadata: { name, namespace: 'default', labels: { app: 'web' }, ...member.metadata },
      spec: {
        containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: request } } }],
        ...member.spec,
      },
      status: {
        ...{ phase, startTime: ago(started) },
        ...(ready === 'none' ? {} : { conditions }),
      },
    });
    const usage = { ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) };
    if (Object.keys(usage).length > 0)
      metrics.push({
        metadata: { name },
        timestamp: ago(sampled),
        window: '30s',
        containers: [{ name: 'main', usage }],
      });
  }
  const answer = await recommendedReplicas({
    run,
    namespace: 'default',
    selector: labelSelectorOf({ matchLabels: { app: 'web' } }),
    labelSelector: 'app=web',
    resource: 'cpu',
    target: utilization(50),
    behavior: undefined,
    currentReplicas: members.length,
    ...query,
  });
  return { ...answer, options };
}

const utilization = (averageUtilization: number): autoscalingV2.MetricTarget => ({
  ...{ type: 'Utilization', averageUtilization },
});
const average = (averageValue: string): autoscalingV2.MetricTarget => ({ type: 'AverageValue', averageValue });
const busy = { cpu: '100m' };
const idle = { cpu: '10m' };

for (const [title, members, expected, query = {}] of [
  ['the use is at twice its target', [busy, busy], 4],
  ['the use is at a fifth of its target', [idle, idle, idle, idle, idle], 1],
  ['the use is at its target', [{ cpu: '50m' }, { cpu: '50m' }], 2],
  ['the use is 10 % above its target', [{ cpu: '55m' }, { cpu: '55m' }], 2],
  ['the use is 12 % above its target', [{ cpu: '56m' }, { cpu: '56m' }], 3],
  ['the use is 10 % below its target', Array(10).fill({ cpu: '45m' }), 10],
  ['the use is 12 % below its target', Array(10).fill({ cpu: '44m' }), 9],
  [
    'the tolerance upwards is 20 %',
    [{ cpu: '56m' }, { cpu: '56m' }],
    2,
    { behavior: { scaleUp: { tolerance: '0.2' } } },
  ],
  [
    'the tolerance downwards is 20 %',
    Array(10).fill({ cpu: '44m' }),
    10,
    { behavior: { scaleDown: { tolerance: '0.2' } } },
  ],
  ['an average of 40m is wanted', [busy, busy], 5, { target: average('40m') }],
  // Starting pods and pods without a sample count as idle when pods are to be added.
  ['one pod is pending', [busy, { ...busy, phase: 'Pending' }], 2],
  ['one of three pods is pending', [{ cpu: '200m' }, { cpu: '200m' }, { phase: 'Pending' }], 8],
  ['one pod has no sample and the others use much', [{ cpu: '200m' }, { cpu: '200m' }, {}], 8],
  ['idle pods would reverse the direction', [{ cpu: '60m' }, {}, {}], 3],
  ['the growth would be below the present number', [{ cpu: '240m' }, {}, {}], 9, { currentReplicas: 9 }],
  // Pods without a sample count as busy when pods are to be removed; starting ones are ignored.
  ['one pod has no sample and the others use little', [idle, idle, idle, idle, {}], 3],
  ['the reduction would be above the present number', [idle, idle, idle, idle, {}], 2, { currentReplicas: 2 }],
  ['busy pods would reverse the direction', [{ cpu: '40m' }, {}, {}], 3],
  ['pods without a sample count as one average', [{ cpu: '10m' }, {}], 2, { target: average('40m') }],
  ['one pod is pending and the others use little', [idle, idle, { phase: 'Pending' }], 1],
  ['failed pods are not counted', [busy, { ...busy, phase: 'Failed' }], 2, { currentReplicas: 1 }],
  ['pods in deletion are not counted', [busy, { metadata: { deletionTimestamp: 'x' } as never, ...busy }], 2],
  ['pods of other labels are not counted', [busy, { cpu: '500m', metadata: { name: 'x', labels: {} } }], 2],
] as [string, Member[], number, Partial<UsageQuery>?][]) {
  test(`${expected} replicas are recommended when ${title}`, async (t) => {
    const complete = members.map((member, i) =>
      member.metadata?.deletionTimestamp === undefined
        ? member
        : { ...member, metadata: { name: `p-${i}`, namespace: 'default', labels: { app: 'web' }, ...member.metadata } },
    );
    t.is((await recommend(complete, query)).replicas, expected);
  });
}

for (const [title, member, counts] of [
  ['has no condition Ready', { ready: 'none' }, false],
  ['has started 299 s ago and is not ready', { started: 299, ready: 'False', changed: 10, sampled: 0 }, false],
  ['has started 299 s ago, with a sample of the time before it was ready', { started: 299, changed: 20 }, false],
  ['has started 299 s ago, with a complete sample', { started: 299, changed: 30 }, true],
  ['has started 300 s ago and is not ready since its start', { started: 300, ready: 'False', changed: 271 }, false],
  ['has started 300 s ago and was ready before', { started: 300, ready: 'False', changed: 270 }, true],
  ['is ready', { started: 300, changed: 0 }, true],
] as [string, Member, boolean][]) {
  test(`the sample of a pod that ${title} is ${counts ? '' : 'not '}used`, async (t) => {
    const { current } = await recommend([{ cpu: '50m' }, { cpu: '100m', ...member }]);
    t.is(current.averageUtilization, counts ? 75 : 50);
    // Only CPU samples are ignored.
    const samples = [{ memory: '1Mi' }, { memory: '3Mi', ...member }];
    const memory = await recommend(samples, { resource: 'memory', target: average('2Mi') });
    t.is(memory.current.averageValue, '2Mi');
  });
}

test('the current use is the average, with the percentage of the requests when the target is one', async (t) => {
  const used = [{ cpu: '100m' }, { cpu: '51m', request: '300m' }];
  const relative = await recommend(used);
  t.deepEqual(relative.current, { averageValue: '75m', averageUtilization: 37 });
  t.like(relative.options, [{ labelSelector: 'app=web' }]);
  t.deepEqual((await recommend(used, { target: average('1') })).current, { averageValue: '75m' });
  t.is((await recommend([{ cpu: '2' }], { target: average('1') })).current.averageValue, '2');
  const memory = async (...texts: string[]) => {
    const samples = texts.map((text) => ({ memory: text }));
    return (await recommend(samples, { resource: 'memory', target: average('1Gi') })).current.averageValue;
  };
  t.deepEqual(
    [await memory('1Ki'), await memory('2Ti'), await memory('2048Ti'), await memory('1500'), await memory('0')],
    ['1Ki', '2Ti', '2048Ti', '1500', '0'],
  );
});

test('requests are those of all containers, of restartable init containers, of one container, or of the pod', async (t) => {
  const of = (name: string, cpu: string, more: object = {}) => ({
    ...{ name, image: 'i', resources: { requests: { cpu } }, ...more },
  });
  const spec = {
    containers: [of('main', '100m'), of('side', '100m')],
    initContainers: [of('once', '700m'), of('always', '200m', { restartPolicy: 'Always' })],
  };
  const percent = async (more: Partial<Pod['spec']>, query: Partial<UsageQuery> = {}) =>
    (await recommend([{ cpu: '100m', spec: { ...spec, ...more } }], query)).current.averageUtilization;
  t.is(await percent({}), 25);
  t.is(await percent({}, { container: 'main' }), 100);
  t.is(await percent({ resources: { requests: { cpu: '1' } } }), 10);
  t.is(await percent({ resources: { requests: {} } }), 25);
  t.is(await percent({ resources: { requests: { cpu: '1' } } }, { container: 'main' }), 100);
});

test('what prevents a recommendation is an error with the message of Kubernetes', async (t) => {
  const fails = async (members: readonly Member[], message: string, query: Partial<UsageQuery> = {}) =>
    t.throwsAsync(recommend(members, query), { message });
  const prefix = 'unable to get metrics for resource cpu: ';
  await fails([{}], `${prefix}no metrics returned from resource metrics API`);
  await fails([busy], 'no pods returned by selector while calculating replica count', { namespace: 'other' });
  const none = 'did not receive metrics for targeted pods (pods might be unready)';
  await fails([{ ...busy, phase: 'Pending' }], none);
  await fails([{ memory: '1Mi' }], none);
  await fails([busy], `${prefix}container side not present in metrics for pod default/p-0`, { container: 'side' });
  const without = [{ name: 'main', image: 'i' }];
  await fails([{ ...busy, spec: { containers: without } }], 'missing request for cpu in container main of Pod p-0');
  await fails(
    [{ ...busy, spec: { resources: { requests: { memory: '1Mi' } } } }],
    'missing pod-level request for cpu in Pod p-0',
  );
  await fails([{ ...busy, request: '0' }], 'no metrics returned matched known pods');
  const list = async () => {
    throw new Error('refused');
  };
  const client = { dynamic: () => ({ namespace: () => ({ list }) }) } as unknown as ApiClient;
  const text = `${prefix}unable to fetch metrics from resource metrics API: refused`;
  await fails([busy], text, { run: runOverObjects([], client) });
});
