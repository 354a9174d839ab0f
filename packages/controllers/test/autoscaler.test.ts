import { formatTime } from '@keelson/core';
import {
  type autoscalingV2,
  Deployment,
  HorizontalPodAutoscaler,
  metricsKinds,
  Pod,
  type PodMetrics,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { limitedReplicas, ScalingHistory } from '../src/autoscaling/scaling-limits.ts';
import { workloadControllers } from '../src/index.ts';
import { WorkloadPlane } from './support/workload-plane.ts';

const labels = { app: 'web' };
type Spec = autoscalingV2.HorizontalPodAutoscalerSpec;
type Metric = autoscalingV2.MetricSpec;
/** What a container of a pod uses; undefined: it has no sample. */
type Usage = (pod: Pod) => Record<string, string> | undefined;

const cpu = (averageUtilization: number): Metric => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});
const memory = (averageValue: string): Metric => ({
  type: 'ContainerResource',
  containerResource: { name: 'memory', container: 'main', target: { type: 'AverageValue', averageValue } },
});

interface Load {
  usage: Usage;
}

/** A plane with a deployment of ready pods that have run for an hour, and an autoscaler of it. */
async function open(t: ExecutionContext, load: Load, replicas: number, spec: Partial<Spec>): Promise<WorkloadPlane> {
  const measured = async (): Promise<PodMetrics[]> => {
    const pods = await workloads.list(Pod);
    return pods.flatMap((pod) => {
      const usage = load.usage(pod);
      const { name = '', namespace = '' } = pod.metadata ?? {};
      const metadata = { name, namespace, labels: pod.metadata?.labels ?? {} };
      const timestamp = formatTime(new Date(workloads.clock.now()));
      return usage ? [{ metadata, timestamp, window: '15s', containers: [{ name: 'main', usage }] }] : [];
    });
  };
  const kinds = metricsKinds(async () => [], measured);
  const workloads = await WorkloadPlane.start(t, { controllers: workloadControllers, kinds });
  const resources = { requests: { cpu: '100m' } };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app:1', resources }] } };
  await workloads.objects(Deployment).create({
    metadata: { name: 'web' },
    spec: { replicas, selector: { matchLabels: labels }, template },
  });
  await aged(workloads, replicas);
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
  await workloads.objects(HorizontalPodAutoscaler).create({
    metadata: { name: 'web' },
    spec: { scaleTargetRef, maxReplicas: 10, metrics: [cpu(50)], ...spec },
  });
  return workloads;
}

/** Waits for ready pods of the deployment, and lets an hour pass since their start. */
async function aged(workloads: WorkloadPlane, replicas: number): Promise<void> {
  await workloads.reaches(Deployment, 'web', ({ status }) => (status?.readyReplicas ?? 0) === replicas);
  const startTime = formatTime(new Date(workloads.clock.now() - 3_600_000));
  for (const { metadata } of await workloads.activePods())
    await workloads.setStatus(metadata?.name ?? '', {
      startTime,
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: startTime }],
    });
}

const reasonOf = ({ status }: HorizontalPodAutoscaler, type: string) =>
  status?.conditions?.find((condition) => condition.type === type)?.reason;
const sizeOf = async (workloads: WorkloadPlane) => (await workloads.objects(Deployment).get('web')).spec.replicas;

test('pods are added at once when they use too much, and removed after five minutes of less use', async (t) => {
  const load: Load = { usage: () => ({ cpu: '100m' }) };
  const workloads = await open(t, load, 2, { minReplicas: 1 });
  await until(async () => {
    workloads.clock.advance(1000);
    return (await sizeOf(workloads)) === 4;
  });
  const reason = 'cpu resource utilization \\(percentage of request\\) above target';
  await workloads.recorded('web', 'SuccessfulRescale', new RegExp(`^New size: 4; reason: ${reason}$`));
  const scaled = await workloads.reaches(HorizontalPodAutoscaler, 'web', ({ status }) => status?.desiredReplicas === 4);
  t.is(scaled.status?.currentReplicas, 2);
  t.like(scaled.status?.currentMetrics?.[0]?.resource, {
    name: 'cpu',
    current: { averageUtilization: 100, averageValue: '100m' },
  });
  t.deepEqual(
    ['AbleToScale', 'ScalingActive', 'ScalingLimited'].map((type) => reasonOf(scaled, type)),
    ['SucceededRescale', 'ValidMetricFound', 'DesiredWithinRange'],
  );
  t.truthy(scaled.status?.lastScaleTime);
  load.usage = () => ({ cpu: '10m' });
  await aged(workloads, 4);
  const began = workloads.clock.now();
  const isStabilized = (found: HorizontalPodAutoscaler) => reasonOf(found, 'AbleToScale') === 'ScaleDownStabilized';
  await workloads.reaches(HorizontalPodAutoscaler, 'web', isStabilized, { advanceMs: 5000 });
  t.is(await sizeOf(workloads), 4);
  await until(async () => {
    workloads.clock.advance(5000);
    return (await sizeOf(workloads)) === 1;
  });
  // The last high recommendation is up to two periods older than the change of the load.
  t.true(workloads.clock.now() - began >= 260_000);
  await workloads.recorded('web', 'SuccessfulRescale', /^New size: 1; reason: All metrics below target$/);
});

test('a deviation of ten percent is ignored, and pods without sample or that start damp the change', async (t) => {
  const load: Load = { usage: () => ({ cpu: '54m' }) };
  const workloads = await open(t, load, 3, {});
  const utilizationIs = (value: number) => (found: HorizontalPodAutoscaler) =>
    found.status?.currentMetrics?.[0]?.resource?.current.averageUtilization === value;
  await workloads.reaches(HorizontalPodAutoscaler, 'web', utilizationIs(54), { advanceMs: 1000 });
  t.is(await sizeOf(workloads), 3);
  const [first, second] = (await workloads.activePods()).map(({ metadata }) => metadata?.name ?? '');
  // Without the two other pods the use would be 160 % of the target; as idle ones they leave it below.
  load.usage = ({ metadata }) => (metadata?.name === first ? undefined : { cpu: '80m' });
  const startTime = formatTime(new Date(workloads.clock.now()));
  await workloads.setStatus(second ?? '', { startTime, conditions: [{ type: 'Ready', status: 'False' }] });
  const isLess = utilizationIs(80);
  await workloads.reaches(HorizontalPodAutoscaler, 'web', isLess, { advanceMs: 5000 });
  t.is(await sizeOf(workloads), 3);
});

test('metrics that cannot be read are stated by conditions and events', async (t) => {
  const identified = { metric: { name: 'requests' }, target: { type: 'AverageValue', averageValue: '10' } };
  const object = { ...identified, describedObject: { kind: 'Service', name: 'web' } };
  const workloads = await open(t, { usage: () => undefined }, 1, {});
  const unable = 'the HPA was unable to compute the replica count: ';
  const custom =
    'unable to get metric requests: unable to fetch metrics from custom metrics API: ' +
    'no custom metrics API (custom.metrics.k8s.io) registered';
  for (const [metric, reason, text] of [
    [
      cpu(50),
      'FailedGetResourceMetric',
      'failed to get cpu utilization: unable to get metrics for resource cpu: ' +
        'no metrics returned from resource metrics API',
    ],
    [{ type: 'Pods', pods: identified }, 'FailedGetPodsMetric', custom],
    [{ type: 'Object', object }, 'FailedGetObjectMetric', custom],
    [
      { type: 'External', external: identified },
      'FailedGetExternalMetric',
      'unable to get external metric default/requests: unable to fetch metrics from external metrics API: ' +
        'no external metrics API (external.metrics.k8s.io) registered',
    ],
  ] as const) {
    await workloads.objects(HorizontalPodAutoscaler).patch('web', 'merge', { spec: { metrics: [metric] } });
    const isStated = (found: HorizontalPodAutoscaler) => reasonOf(found, 'ScalingActive') === reason;
    const found = await workloads.reaches(HorizontalPodAutoscaler, 'web', isStated, { advanceMs: 1000 });
    const condition = found.status?.conditions?.find(({ type }) => type === 'ScalingActive');
    t.like(condition, { status: 'False', message: `${unable}${text}` });
  }
  await workloads.recorded(
    'web',
    'FailedComputeMetricsReplicas',
    /^invalid metrics \(1 invalid out of 1\), first error/,
  );
  t.is(await sizeOf(workloads), 1);
});

test('the limits of the spec apply without metrics, and a target of zero replicas is not scaled', async (t) => {
  const load: Load = { usage: () => ({ cpu: '10m', memory: '96Mi' }) };
  const workloads = await open(t, load, 5, { maxReplicas: 3, metrics: [memory('64Mi')] });
  await until(async () => {
    workloads.clock.advance(1000);
    return (await sizeOf(workloads)) === 3;
  });
  const above = /^New size: 3; reason: Current number of replicas above Spec\.MaxReplicas$/;
  await workloads.recorded('web', 'SuccessfulRescale', above);
  const isLimited = (found: HorizontalPodAutoscaler) => reasonOf(found, 'ScalingLimited') === 'TooManyReplicas';
  const limited = await workloads.reaches(HorizontalPodAutoscaler, 'web', isLimited, { advanceMs: 1000 });
  t.is(limited.status?.currentMetrics?.[0]?.containerResource?.current.averageValue, '96Mi');
  await workloads.objects(HorizontalPodAutoscaler).patch('web', 'merge', { spec: { maxReplicas: 9, minReplicas: 4 } });
  await workloads.recorded('web', 'SuccessfulRescale', /reason: Current number of replicas below Spec\.MinReplicas$/);
  await workloads.objects(Deployment).patch('web', 'merge', { spec: { replicas: 0 } });
  const isDisabled = (found: HorizontalPodAutoscaler) => reasonOf(found, 'ScalingActive') === 'ScalingDisabled';
  await workloads.reaches(HorizontalPodAutoscaler, 'web', isDisabled, { advanceMs: 1000 });
  await workloads.objects(Deployment).delete('web', { propagationPolicy: 'Background' });
  const isGone = (found: HorizontalPodAutoscaler) => reasonOf(found, 'AbleToScale') === 'FailedGetScale';
  await workloads.reaches(HorizontalPodAutoscaler, 'web', isGone, { advanceMs: 1000 });
  await workloads.recorded('web', 'FailedGetScale', /"web" not found/);
});

test('windows and policies limit the change of each direction', (t) => {
  const scaleUp = {
    selectPolicy: 'Max',
    stabilizationWindowSeconds: 0,
    policies: [] as autoscalingV2.HPAScalingPolicy[],
  };
  const pods = (value: number, periodSeconds = 60) => ({ type: 'Pods', value, periodSeconds });
  const percent = (value: number, periodSeconds = 60) => ({ type: 'Percent', value, periodSeconds });
  const behavior = (up: object, down: object) => ({
    scaleUp: { ...scaleUp, policies: [pods(100)], ...up },
    scaleDown: { selectPolicy: 'Max', stabilizationWindowSeconds: 0, policies: [percent(100)], ...down },
  });
  const now = 10_000_000;
  for (const [name, current, recommended, rules, expected, limited, past = []] of [
    ['without behaviour at most the double', 6, 50, undefined, 12, 'ScaleUpLimit'],
    ['without behaviour from one to four', 1, 50, undefined, 4, 'ScaleUpLimit'],
    ['the maximum of the spec', 15, 50, undefined, 20, 'TooManyReplicas'],
    ['the minimum of the spec', 5, 0, undefined, 2, 'TooFewReplicas'],
    ['the default window of scaling down', 5, 3, undefined, 5, 'DesiredWithinRange', [[299, 5]]],
    ['after the default window', 5, 3, undefined, 3, 'DesiredWithinRange', [[301, 5]]],
    ['pods per period', 5, 20, behavior({ policies: [pods(3)] }, {}), 8, 'ScaleUpLimit'],
    ['the greater policy', 10, 20, behavior({ policies: [pods(3), percent(50)] }, {}), 15, 'ScaleUpLimit'],
    ['Min', 10, 20, behavior({ selectPolicy: 'Min', policies: [pods(3), percent(50)] }, {}), 13, 'ScaleUpLimit'],
    ['Disabled', 10, 3, behavior({}, { selectPolicy: 'Disabled' }), 10, 'ScaleDownLimit'],
    ['percent downwards', 10, 3, behavior({}, { policies: [percent(15)] }), 8, 'ScaleDownLimit'],
    [
      'the lowest of the window upwards',
      5,
      9,
      behavior({ stabilizationWindowSeconds: 60 }, {}),
      6,
      'DesiredWithinRange',
      [[30, 6]],
    ],
    [
      'the highest of the window downwards',
      9,
      3,
      behavior({}, { stabilizationWindowSeconds: 60 }),
      7,
      'DesiredWithinRange',
      [[30, 7]],
    ],
  ] as const) {
    const history = new ScalingHistory();
    for (const [seconds, value] of past) history.recommended(value, now - seconds * 1000);
    const spec: Spec = { scaleTargetRef: { kind: 'Deployment', name: 'web' }, minReplicas: 2, maxReplicas: 20 };
    if (rules !== undefined) spec.behavior = rules;
    const { replicas, conditions } = limitedReplicas({ spec, history, current, recommended, now });
    t.is(replicas, expected, name);
    t.is(conditions.find(({ type }) => type === 'ScalingLimited')?.reason, limited, name);
  }
  // What was added within the period counts.
  const history = new ScalingHistory();
  history.scaled(2, now - 30_000);
  history.scaled(9, now - 90_000);
  const spec = { scaleTargetRef: { kind: 'Deployment', name: 'web' }, maxReplicas: 20 };
  const rules = behavior({ policies: [pods(3)] }, {});
  t.is(limitedReplicas({ spec: { ...spec, behavior: rules }, history, current: 7, recommended: 20, now }).replicas, 8);
});
