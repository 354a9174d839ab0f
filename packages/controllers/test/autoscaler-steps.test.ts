import { type ApiClient, formatTime, type KubeObject, statusErrors } from '@keelson/core';
import { type autoscalingV2, HorizontalPodAutoscaler, Pod } from '@keelson/kinds';
import test from 'ava';
import { autoscalerController } from '../src/autoscaling/autoscaler-controller.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

let uids = 0;

interface Situation {
  readonly spec?: Partial<autoscalingV2.HorizontalPodAutoscalerSpec>;
  readonly replicas?: number;
  readonly selector?: string;
  /** CPU of each of the two pods, which request 100m. */
  readonly cpu?: string;
  /** Fails a request for the scale. */
  readonly fail?: (request: string) => void;
}

/** An autoscaler of `apps/v1` Widgets, whose pods have run for an hour. */
function situation({ spec = {}, replicas = 2, selector = 'app=web', cpu = '50m', fail }: Situation = {}) {
  uids += 1;
  const autoscaler = {
    metadata: { name: 'web', namespace: 'default', uid: `hpa-${uids}` },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Widget', name: 'web' },
      maxReplicas: 10,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
      ...spec,
    },
  } as HorizontalPodAutoscaler;
  const { client, bodies } = recordedWrites();
  const requests: string[] = [];
  const kept = { scale: { metadata: { name: 'web' }, spec: { replicas }, status: { selector } } as KubeObject };
  const request = (text: string) => {
    requests.push(text);
    fail?.(text);
  };
  const discovered = ['v1beta1', 'v1'].map((version) => ({
    ...{ group: 'apps', version, resource: `widgets.${version}`, kind: 'Widget' },
  }));
  const dynamic = ({ resource }: { readonly resource: string }) => ({
    namespace: () => ({
      list: async () => ({
        items: ['a', 'b'].map((name) => ({
          metadata: { name },
          timestamp: formatTime(new Date(run.clock.now())),
          containers: [{ name: 'main', usage: { cpu } }],
        })),
      }),
      getSubresource: async () => {
        request(`get ${resource}`);
        return kept.scale;
      },
      updateSubresource: async (_name: string, _subresource: string, body: { spec: { replicas: number } }) => {
        request(`scale ${resource} to ${body.spec.replicas}`);
        return body;
      },
    }),
  });
  const discover = async () => {
    requests.push('discover');
    return discovered;
  };
  const autoscalers = [autoscaler];
  const pods = ['a', 'b'].map((name) => {
    const hourAgo = '1970-01-01T00:00:00Z';
    return {
      metadata: { name, namespace: 'default', labels: { app: 'web' } },
      spec: { containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: '100m' } } }] },
      status: {
        phase: 'Running',
        startTime: hourAgo,
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: hourAgo }],
      },
    } as Pod;
  });
  const copies = [
    [HorizontalPodAutoscaler, autoscalers],
    [Pod, pods],
  ] as const;
  const run = runOverObjects(copies, { ...client, discover, dynamic } as unknown as ApiClient);
  const reconcile = async (object = autoscaler) => {
    const result = await autoscalerController.reconcile(object as never, {
      ...run,
      key: `default/${object.metadata?.name}`,
    });
    const patched = (bodies.at(-1) as HorizontalPodAutoscaler | undefined)?.status;
    const reasons = patched?.conditions
      ?.map(({ type, status: value, reason }) => `${type} ${value} ${reason}`)
      .join(', ');
    return { again: result?.againAfterMs, status: patched, reasons };
  };
  return { autoscaler, autoscalers, reconcile, requests, run, kept };
}

test('the size is changed by the scale of the target, with the requested version of its kind', async (t) => {
  const { reconcile, requests, run } = situation({ cpu: '100m' });
  const { status, reasons, again } = await reconcile();
  t.deepEqual(requests, ['discover', 'get widgets.v1', 'scale widgets.v1 to 4']);
  t.is(
    reasons,
    'AbleToScale True SucceededRescale, ScalingActive True ValidMetricFound, ScalingLimited False DesiredWithinRange',
  );
  t.like(status, { currentReplicas: 2, desiredReplicas: 4, lastScaleTime: formatTime(new Date(run.clock.now())) });
  t.is(again, 15_000);
  t.deepEqual(run.events, [
    'Normal SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target',
  ]);
});

test('a size that fits is not written; runs follow each other after 15 s, or at once with another spec', async (t) => {
  const { autoscaler, reconcile, requests, run } = situation();
  const { status, reasons } = await reconcile();
  t.deepEqual(requests, ['discover', 'get widgets.v1']);
  t.is(
    reasons,
    'AbleToScale True ReadyForNewScale, ScalingActive True ValidMetricFound, ScalingLimited False DesiredWithinRange',
  );
  t.like(status, { currentReplicas: 2, desiredReplicas: 2 });
  t.false('lastScaleTime' in (status ?? {}));
  run.clock.advance(5000);
  t.is((await reconcile()).again, 10_000);
  t.is(requests.length, 2);
  await reconcile({ ...autoscaler, spec: { ...autoscaler.spec, maxReplicas: 9 } });
  t.deepEqual(requests.slice(2), ['get widgets.v1'], 'the resource of the target is known');
  run.clock.advance(15_000);
  await reconcile({ ...autoscaler, spec: { ...autoscaler.spec, maxReplicas: 9 } });
  t.is(requests.length, 4);
});

test('a target without the kind, without a scale and without a selector is reported', async (t) => {
  const unknown = situation({
    spec: { scaleTargetRef: { apiVersion: 'example.com/v1', kind: 'Widget', name: 'web' } },
  });
  t.is((await unknown.reconcile()).reasons, 'AbleToScale False FailedGetScale');
  t.deepEqual(unknown.run.events, ['Warning FailedGetScale: no matches for kind "Widget" in group "example.com"']);
  let fails = true;
  const broken = situation({
    fail: (request) => {
      if (fails && request.startsWith('get')) throw new Error('gone');
    },
  });
  const failed = await broken.reconcile();
  t.is(
    failed.status?.conditions?.[0]?.message,
    "the HPA controller was unable to get the target's current scale: gone",
  );
  fails = false;
  broken.run.clock.advance(15_000);
  await broken.reconcile();
  t.is(broken.requests.filter((request) => request === 'discover').length, 2, 'the kind is looked up again');
  const unselected = situation({ selector: '' });
  t.is(
    (await unselected.reconcile()).reasons,
    'AbleToScale True SucceededGetScale, ScalingActive False InvalidSelector',
  );
  t.is(unselected.run.events[0], 'Warning SelectorRequired: selector is required');
  const invalid = situation({ selector: 'a in' });
  t.regex((await invalid.reconcile()).reasons ?? '', /ScalingActive False InvalidSelector$/);
  t.regex(invalid.run.events[0] ?? '', /^Warning InvalidSelector: couldn't convert selector into a corresponding/);
});

test('pods of several autoscalers are not scaled', async (t) => {
  const first = situation();
  const other = { ...first.autoscaler, metadata: { name: 'other', namespace: 'default', uid: `other-${uids}` } };
  first.autoscalers.push(other);
  await first.reconcile();
  const { reasons } = await first.reconcile(other);
  t.is(reasons, 'AbleToScale True SucceededGetScale, ScalingActive False AmbiguousSelector');
  t.regex(
    first.run.events[0] ?? '',
    /pods by selector app=web are controlled by multiple HPAs: \[default\/web default\/other\]$/,
  );
});

test('the limits apply before the metrics, and a size of zero is scaled only if it is permitted', async (t) => {
  const desired = async (replicas: number, spec: Situation['spec']) =>
    (await situation({ replicas, spec: spec ?? {} }).reconcile()).status?.desiredReplicas;
  t.is(await desired(11, {}), 10);
  t.is(await desired(10, {}), 10);
  t.is(await desired(2, { minReplicas: 3 }), 3);
  t.is(await desired(3, { minReplicas: 3 }), 3);
  t.is(await desired(0, {}), 0);
  const disabled = await situation({ replicas: 0 }).reconcile();
  t.is(disabled.reasons, 'AbleToScale True SucceededGetScale, ScalingActive False ScalingDisabled');
});

test('a conflict of the scale is retried with the stored one, other failures are reported', async (t) => {
  let conflicts = 2;
  const conflict = statusErrors.conflict({ group: 'apps', resource: 'widgets' } as never, 'web', 'changed');
  const contended = situation({
    cpu: '100m',
    fail: (request) => {
      if (!request.startsWith('scale') || conflicts === 0) return;
      conflicts -= 1;
      throw conflict;
    },
  });
  t.regex((await contended.reconcile()).reasons ?? '', /^AbleToScale True SucceededRescale/);
  t.is(contended.requests.filter((request) => request.startsWith('scale')).length, 3);
  const refused = situation({
    cpu: '100m',
    fail: (request) => {
      if (request.startsWith('scale')) throw new Error('refused');
    },
  });
  const { status, reasons } = await refused.reconcile();
  t.regex(reasons ?? '', /^AbleToScale False FailedUpdateScale/);
  t.is(status?.desiredReplicas, undefined);
  t.regex(refused.run.events[0] ?? '', /^Warning FailedRescale: New size: 4; reason: .*; error: refused$/);
  t.is(refused.requests.filter((request) => request.startsWith('scale')).length, 1);
});

test('the greatest recommendation applies; failed metrics forbid only a reduction', async (t) => {
  const cpu = (averageUtilization: number) => ({
    ...{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } },
  });
  const missing = {
    type: 'Resource',
    resource: { name: 'memory', target: { type: 'Utilization', averageUtilization: 50 } },
  };
  const outcome = async (...metrics: object[]) => {
    const { reconcile, run } = situation({ spec: { metrics } as never });
    const { status, reasons } = await reconcile();
    return [
      status?.desiredReplicas,
      reasons?.split(', ').find((text) => text.startsWith('ScalingActive')),
      run.events.length,
    ];
  };
  t.deepEqual(await outcome(cpu(50), cpu(25), cpu(100)), [4, 'ScalingActive True ValidMetricFound', 1]);
  t.deepEqual(await outcome(missing, cpu(25)), [4, 'ScalingActive True ValidMetricFound', 2]);
  t.deepEqual(await outcome(missing, cpu(50)), [2, 'ScalingActive True ValidMetricFound', 1]);
  t.deepEqual(await outcome(missing, cpu(100)), [undefined, 'ScalingActive False FailedGetResourceMetric', 2]);
});
