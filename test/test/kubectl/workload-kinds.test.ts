import { kubectlTest } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

const labels = { app: 'web' };
const pods = (spec: Record<string, unknown> = {}) => ({
  metadata: { labels },
  spec: { containers: [{ name: 'app', image: 'nginx:1.25' }], ...spec },
});
const object = (apiVersion: string, kind: string, name: string, fields: Record<string, unknown>) => ({
  apiVersion,
  kind,
  metadata: { name },
  ...fields,
});
const selector = { matchLabels: labels };
// Nothing runs the pods, and jobs are suspended: no cell below depends on a controller.
const objects = [
  object('apps/v1', 'StatefulSet', 'db', { spec: { replicas: 0, selector, serviceName: 'db', template: pods() } }),
  object('apps/v1', 'ControllerRevision', 'db-1', { data: { spec: {} }, revision: 1 }),
  object('policy/v1', 'PodDisruptionBudget', 'db', { spec: { minAvailable: '50%', selector } }),
  object('batch/v1', 'Job', 'once', { spec: { suspend: true, template: pods({ restartPolicy: 'Never' }) } }),
  object('batch/v1', 'CronJob', 'nightly', {
    spec: {
      schedule: '0 3 * * *',
      timeZone: 'Europe/Berlin',
      suspend: true,
      jobTemplate: { spec: { template: pods({ restartPolicy: 'OnFailure' }) } },
    },
  }),
  object('v1', 'ReplicationController', 'old', { spec: { replicas: 0, template: pods() } }),
  object('v1', 'PodTemplate', 'form', { template: pods() }),
  object('autoscaling/v2', 'HorizontalPodAutoscaler', 'db', {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' },
      maxReplicas: 4,
      metrics: [
        { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } },
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
      ],
    },
  }),
];

test('kubectl creates, shows, explains and describes the kinds of workloads', async (t) => {
  const { kubectl } = t.context;
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  await kubectl.run(['create', '-f', '-'], { input: JSON.stringify(list) });
  for (const [resource, table] of [
    ['statefulset', /^NAME\s+READY\s+AGE\ndb\s+0\/0\s+\d+s$/m],
    ['controllerrevision/db-1', /^NAME\s+CONTROLLER\s+REVISION\s+AGE\ndb-1\s+<none>\s+1\s+\d+s$/m],
    ['pdb', /^NAME\s+MIN AVAILABLE\s+MAX UNAVAILABLE\s+ALLOWED DISRUPTIONS\s+AGE\ndb\s+50%\s+N\/A\s+0\s+\d+s$/m],
    ['job', /^NAME\s+STATUS\s+COMPLETIONS\s+DURATION\s+AGE\nonce\s+(Suspended|Running)\s+0\/1\s+\d+s$/m],
    [
      'cj',
      /^NAME\s+SCHEDULE\s+TIMEZONE\s+SUSPEND\s+ACTIVE\s+LAST SCHEDULE\s+AGE\nnightly\s+0 3 \* \* \*\s+Europe\/Berlin\s+True\s+0\s+<none>\s+\d+s$/m,
    ],
    ['rc', /^NAME\s+DESIRED\s+CURRENT\s+READY\s+AGE\nold\s+0\s+0\s+0\s+\d+s$/m],
    ['podtemplate', /^NAME\s+CONTAINERS\s+IMAGES\s+POD LABELS\nform\s+app\s+nginx:1\.25\s+app=web$/m],
    ['hpa', /^db\s+StatefulSet\/db\s+memory: <unknown>\/1Gi, cpu: <unknown>\/70%\s+1\s+4\s+0\s+\d+s$/m],
    ['hpa.v1.autoscaling', /^db\s+StatefulSet\/db\s+memory: <unknown>\/1Gi, cpu: <unknown>\/70%\s+1\s+4\s+0\s+\d+s$/m],
  ] as const) {
    t.regex(await kubectl.run(['get', ...resource.split('/')]), table, resource);
  }
  for (const [field, text] of [
    ['statefulset.spec.volumeClaimTemplates.metadata.name', /VERSION:\s+v1\n[\s\S]*FIELD: name <string>/],
    ['controllerrevision.data', /FIELD: data/],
    ['pdb.spec.minAvailable', /FIELD: minAvailable <IntOrString>/],
    ['job.spec.podFailurePolicy.rules.onExitCodes', /FIELD: onExitCodes <PodFailurePolicyOnExitCodesRequirement>/],
    ['cronjob.spec.jobTemplate.spec.suspend', /FIELD: suspend <boolean>/],
    ['hpa.spec.behavior.scaleUp', /VERSION:\s+v2\n[\s\S]*FIELD: scaleUp <HPAScalingRules>/],
    ['rc.spec.selector', /FIELD: selector <map\[string\]string>/],
    ['podtemplate.template', /FIELD: template <PodTemplateSpec>/],
  ] as const) {
    t.regex(await kubectl.run(['explain', field]), text, field);
  }
  const described = await kubectl.run(['describe', 'sts/db', 'pdb/db', 'job/once', 'cj/nightly', 'rc/old', 'hpa/db']);
  for (const text of [
    /Update Strategy:\s+RollingUpdate/,
    /Min available:\s+50%/,
    /Completion Mode:\s+NonIndexed/,
    /Schedule:\s+0 3 \* \* \*/,
    /Replicas:\s+0 current \/ 0 desired/,
    /resource cpu on pods\s+\(as a percentage of request\):\s+<unknown> \/ 70%/,
  ]) {
    t.regex(described, text);
  }
});

test('kubectl commands for workloads support the new kinds', async (t) => {
  const { kubectl } = t.context;
  await kubectl.run(['create', 'cronjob', 'tick', '--image=busybox', '--schedule=*/5 * * * *', '--', 'date']);
  await kubectl.run(['create', 'job', 'tick-now', '--from=cronjob/tick']);
  t.is(
    await kubectl.run(['get', 'job', 'tick-now', '-o', 'jsonpath={.metadata.annotations}']),
    '{"cronjob.kubernetes.io/instantiate":"manual"}',
  );
  await kubectl.run(['create', 'pdb', 'tick', '--selector=app=tick', '--max-unavailable=1']);
  await kubectl.run(['create', '-f', '-'], { input: JSON.stringify({ ...objects[0], metadata: { name: 'two' } }) });
  await kubectl.run(['scale', 'sts/two', '--replicas=2']);
  t.is(await kubectl.run(['get', 'sts/two', '-o', 'jsonpath={.spec.replicas} {.metadata.generation}']), '2 2');
  await kubectl.run(['autoscale', 'sts/two', '--max=3', '--cpu-percent=60']);
  t.is(
    await kubectl.run(['get', 'hpa.v2.autoscaling/two', '-o', 'jsonpath={.spec.metrics[0].resource.target}']),
    '{"averageUtilization":60,"type":"Utilization"}',
  );
  const refused = await kubectl.try(['patch', 'sts/two', '--type=merge', '-p', '{"spec":{"serviceName":"other"}}']);
  t.regex(refused.stderr, /updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template'/);
  const invalid = await kubectl.try(['create', 'cronjob', 'bad', '--image=a', '--schedule=61 * * * *']);
  t.regex(invalid.stderr, /end of range \(61\) above maximum \(59\): 61/);
});
