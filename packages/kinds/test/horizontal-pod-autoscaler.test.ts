import { decoderOf } from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import { HorizontalPodAutoscaler, AutoscalingV1HorizontalPodAutoscaler as Old } from '../src/index.ts';
import { create, defaulted, row, updateStatus } from './helpers/writes.ts';

const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const autoscaler = (
  version: 'v1' | 'v2',
  spec: Record<string, unknown> = {},
  annotations?: Record<string, string>,
) => ({
  apiVersion: `autoscaling/${version}`,
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'web', namespace: 'default', ...(annotations ? { annotations } : {}) },
  spec: { scaleTargetRef, maxReplicas: 5, ...spec },
});
const cpu = (averageUtilization: number) => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});
const memory = {
  type: 'Resource',
  resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } },
};
const prefix = 'autoscaling.alpha.kubernetes.io';

test('defaults of both versions of HorizontalPodAutoscaler', (t) => {
  const { spec } = defaulted(HorizontalPodAutoscaler, autoscaler('v2', { behavior: { scaleDown: { policies: [] } } }));
  t.deepEqual(spec.metrics, [cpu(80)]);
  t.is(spec.minReplicas, 1);
  t.deepEqual(spec.behavior, {
    scaleUp: {
      stabilizationWindowSeconds: 0,
      selectPolicy: 'Max',
      policies: [
        { type: 'Pods', value: 4, periodSeconds: 15 },
        { type: 'Percent', value: 100, periodSeconds: 15 },
      ],
    },
    scaleDown: { selectPolicy: 'Max', policies: [] },
  });
  t.like(defaulted(Old, autoscaler('v1')).spec, { minReplicas: 1, targetCPUUtilizationPercentage: 80 });
  const annotated = defaulted(Old, autoscaler('v1', {}, { [`${prefix}/metrics`]: JSON.stringify([memory]), a: 'b' }));
  t.is(annotated.spec.targetCPUUtilizationPercentage, undefined);
});

const metric = (fields: Record<string, unknown>) => ({ metrics: [fields] });
const at = 'spec.metrics[0]';
for (const [title, spec, messages] of [
  ['memory', metric(memory), []],
  [
    'limits out of range',
    { minReplicas: 0, maxReplicas: -1 },
    [
      'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
      'spec.maxReplicas: Invalid value: -1: must be greater than 0',
      'spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`',
    ],
  ],
  [
    'no workload',
    { scaleTargetRef: { kind: '', name: 'a/b' } },
    [
      'spec.scaleTargetRef.kind: Required value',
      `spec.scaleTargetRef.name: Invalid value: "a/b": may not contain '/'`,
      'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
    ],
  ],
  ['a replication controller', { scaleTargetRef: { kind: 'ReplicationController', name: 'a', apiVersion: 'v1' } }, []],
  [
    'an unknown metric',
    metric({ type: 'Moon' }),
    [
      `${at}.type: Unsupported value: "Moon": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`,
    ],
  ],
  [
    'a metric of another type',
    metric({ type: 'Pods', resource: memory.resource }),
    [`${at}.pods: Required value: must populate information for the given metric source`],
  ],
  [
    'two metrics in one',
    metric({ ...memory, pods: { metric: { name: 'a' }, target: { type: 'AverageValue', averageValue: '1' } } }),
    [`${at}.pods: Forbidden: must populate the given metric source only`],
  ],
  [
    'a target without value',
    metric({ type: 'Resource', resource: { name: '', target: { type: 'Much' } } }),
    [
      `${at}.resource.name: Required value: must specify a resource name`,
      `${at}.resource.target.type: Invalid value: "Much": must be either Utilization, Value, or AverageValue`,
      `${at}.resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization`,
    ],
  ],
  [
    'targets that are not positive',
    metric({
      type: 'External',
      external: { metric: { name: 'q' }, target: { type: 'Value', value: '0', averageValue: '-1' } },
    }),
    [
      `${at}.external.target.value: Invalid value: "0": must be positive`,
      `${at}.external.target.averageValue: Invalid value: "-1": must be positive`,
      `${at}.external.target.value: Forbidden: may not set both a target value for metric and a per-pod target`,
    ],
  ],
  [
    'invalid behavior',
    {
      behavior: {
        scaleUp: {
          stabilizationWindowSeconds: 3601,
          selectPolicy: 'Any',
          policies: [{ type: 'Cores', value: 0, periodSeconds: 1801 }],
        },
      },
    },
    [
      'spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600',
      'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Any": supported values: "Disabled", "Max", "Min"',
      'spec.behavior.scaleUp.policies[0].type: Unsupported value: "Cores": supported values: "Percent", "Pods"',
      'spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero',
      'spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
    ],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`HorizontalPodAutoscaler with ${title}`, (t) => {
    t.deepEqual(create(HorizontalPodAutoscaler, autoscaler('v2', spec)).messages, messages);
  });
}

test('autoscaling/v1 is validated like its stored form in autoscaling/v2', (t) => {
  t.deepEqual(create(Old, autoscaler('v1', { targetCPUUtilizationPercentage: 0 })).messages, [
    `${at}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0`,
  ]);
  const old = create(Old, autoscaler('v1')).object;
  const { messages } = updateStatus(Old, old, (object) => {
    object.status = { currentReplicas: -1, desiredReplicas: 1 };
  });
  t.deepEqual(messages, ['status.currentReplicas: Invalid value: -1: must be greater than or equal to 0']);
});

const { toStorage, fromStorage } = Old.storage!;
const metrics = fc.array(fc.constantFrom(cpu(50), cpu(70), memory, { ...cpu(1), type: 'Odd' }, { type: 'Resource' }), {
  maxLength: 4,
});
const status = fc.record({
  currentReplicas: fc.nat(9),
  desiredReplicas: fc.nat(9),
  currentMetrics: fc.array(
    fc.constantFrom(
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 3 } } },
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 3, averageValue: '1' } } },
      { type: 'Resource', resource: { name: 'memory', current: { averageValue: '1Gi' } } },
    ),
    { maxLength: 3 },
  ),
  conditions: fc.option(fc.constant([{ type: 'AbleToScale', status: 'True' }]), { nil: undefined }),
});

test('fields of autoscaling/v2 survive a write through autoscaling/v1', (t) => {
  const arbitrary = fc.record({
    metrics,
    status,
    behavior: fc.option(fc.constant({ scaleUp: { selectPolicy: 'Min' } }), { nil: undefined }),
    own: fc.option(fc.constant({ a: 'b' }), { nil: undefined }),
  });
  fc.assert(
    fc.property(arbitrary, ({ metrics: list, status: observed, behavior, own }) => {
      const manifest = { ...autoscaler('v2', { metrics: list, behavior }, own), status: observed };
      const { value: stored } = decoderOf(HorizontalPodAutoscaler.schema)(defaulted(HorizontalPodAutoscaler, manifest));
      const shown = fromStorage(structuredClone(stored));
      t.deepEqual(decoderOf(Old.schema)(shown).unknownFields, []);
      const written = structuredClone(shown);
      Old.strategy.default?.(written);
      t.deepEqual(written, shown);
      const back = decoderOf(HorizontalPodAutoscaler.schema)(toStorage(written));
      t.deepEqual(back.unknownFields, []);
      t.deepEqual(back.value, stored);
    }),
  );
});

test('objects of autoscaling/v1 are unchanged after storage, with annotations of any content', (t) => {
  const text = fc.oneof(fc.string(), fc.json(), fc.constantFrom('[null]', '[{}]', '{"scaleUp":1}', '[{"type":1}]'));
  const annotations = fc.dictionary(
    fc.constantFrom(
      'a',
      `${prefix}/metrics`,
      `${prefix}/behavior`,
      `${prefix}/current-metrics`,
      `${prefix}/conditions`,
    ),
    text,
  );
  const percentage = fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined });
  fc.assert(
    fc.property(annotations, percentage, (own, targetCPUUtilizationPercentage) => {
      const { object } = create(Old, autoscaler('v1', { targetCPUUtilizationPercentage }, own));
      const again = fromStorage(toStorage(structuredClone(object)));
      t.deepEqual(decoderOf(Old.schema)(again).value, decoderOf(Old.schema)(object).value);
    }),
  );
});

test('metrics beside cpu are an annotation in autoscaling/v1', (t) => {
  const { object } = create(HorizontalPodAutoscaler, autoscaler('v2', { metrics: [memory, cpu(60)] }));
  const shown = fromStorage(object);
  t.is(shown.spec.targetCPUUtilizationPercentage, 60);
  t.deepEqual(shown.metadata?.annotations, { [`${prefix}/metrics`]: JSON.stringify([memory]) });
});

test('rows of both versions', (t) => {
  const pods = {
    type: 'Pods',
    pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '10' } },
  };
  const { object } = create(HorizontalPodAutoscaler, autoscaler('v2', { metrics: [cpu(60), memory, pods] }));
  object.status = {
    currentReplicas: 2,
    desiredReplicas: 3,
    currentMetrics: [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 42 } } }],
  };
  const cells = {
    Name: 'web',
    Reference: 'Deployment/web',
    Targets: 'cpu: 42%/60%, memory: <unknown>/1Gi + 1 more...',
    MinPods: '1',
    MaxPods: 5,
    Replicas: 2,
    Age: '<unknown>',
  };
  t.deepEqual(row(HorizontalPodAutoscaler, object), cells);
  t.deepEqual(row(Old, fromStorage(object)), cells);
});
