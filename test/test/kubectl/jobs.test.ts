import { eventually } from '@keelson/testing';
import test from 'ava';
import { findKubectl } from '../../src/kubectl.ts';
import { type NodeOfUp, startNodeOfUp } from '../../src/node-of-up.ts';

const waitMs = 60_000;
const command = process.platform === 'linux' ? findKubectl() : undefined;
const withKubectl = command === undefined ? test.skip : test.serial;

let up: NodeOfUp;

test.before(async (t) => {
  t.timeout(120_000);
  if (command !== undefined) up = await startNodeOfUp(command);
});

test.after.always(() => (command === undefined ? undefined : up.stop()));

const run = (...args: string[]) => up.kubectl.run(args);
const apply = (object: object) => up.kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(object) });
const field = (resource: string, path: string) => run('get', resource, '-o', `jsonpath={${path}}`);

/** Containers of this node are processes of the machine. */
function podSpec(script: string, more: object = {}) {
  const container = { name: 'main', image: 'host', command: ['sh', '-c', script], ...more };
  return { restartPolicy: 'Never', terminationGracePeriodSeconds: 0, containers: [container] };
}

const job = (name: string, spec: object, script: string) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name },
  spec: { ...spec, template: { spec: podSpec(script) } },
});

withKubectl('kubectl waits for jobs that complete and that fail, and resumes a suspended one', async (t) => {
  t.timeout(200_000);
  const indexed = { completions: 4, parallelism: 2, completionMode: 'Indexed' };
  await apply(job('indexed', indexed, 'echo index $JOB_COMPLETION_INDEX'));
  await apply(job('broken', { backoffLimit: 0 }, 'exit 3'));
  await apply(job('later', { suspend: true }, 'true'));
  await run('wait', '--for=condition=complete', 'job/indexed', '--timeout=80s');
  t.regex(await run('get', 'job', 'indexed', '--no-headers'), /^indexed +Complete +4\/4 /);
  t.is(await field('job/indexed', '.status.completedIndexes'), '0-3');
  const last = 'batch.kubernetes.io/job-completion-index=3';
  t.is((await run('logs', '-l', last)).trim(), 'index 3');

  await run('wait', '--for=condition=failed', 'job/broken', '--timeout=60s');
  t.regex(await run('describe', 'job', 'broken'), /BackoffLimitExceeded.*Job has reached the specified backoff limit/);
  t.is(await field('job/broken', '.status.failed'), '1');

  await run('wait', '--for=condition=suspended', 'job/later', '--timeout=60s');
  await run('patch', 'job', 'later', '-p', '{"spec":{"suspend":false}}');
  await run('wait', '--for=condition=complete', 'job/later', '--timeout=60s');

  // Deletes the pods as well, although they have had a finalizer.
  await run('delete', 'job', 'indexed', 'broken', 'later', '--timeout=60s');
  await run('wait', '--for=delete', 'pods', '--all', '--timeout=60s');
});

withKubectl('kubectl creates a job from a cron job', async (t) => {
  t.timeout(150_000);
  await run('create', 'cronjob', 'report', '--image=host', '--schedule=0 0 1 1 *', '--', 'sh', '-c', 'echo reported');
  await run('create', 'job', '--from=cronjob/report', 'now');
  await run('wait', '--for=condition=complete', 'job/now', '--timeout=80s');
  t.is((await run('logs', 'job/now')).trim(), 'reported');
  t.is(await field('job/now', '.metadata.annotations.cronjob\\.kubernetes\\.io/instantiate'), 'manual');
  await eventually(async () => (await field('cronjob/report', '.status.lastSuccessfulTime')) !== '', waitMs);
  t.regex(await run('get', 'cronjob', 'report', '--no-headers'), /^report +0 0 1 1 \* +<none> +False +0 /);
  await run('delete', 'cronjob', 'report', '--timeout=60s');
  await run('wait', '--for=delete', 'jobs', '--all', '--timeout=60s');
});

withKubectl('an autoscaler reports the load, and keeps the number of pods within its limits', async (t) => {
  t.timeout(200_000);
  const labels = { app: 'busy' };
  // Far more than the request, and little for the machine.
  const script = 'while true; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.5; done';
  const requests = { resources: { requests: { cpu: '2m' } } };
  const template = { metadata: { labels }, spec: { ...podSpec(script, requests), restartPolicy: 'Always' } };
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await apply({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'busy' }, spec });
  await run('autoscale', 'deployment', 'busy', '--min=1', '--max=2', '--cpu-percent=50');
  const events = async () => run('get', 'events', '--field-selector=reason=SuccessfulRescale', '-o', 'name');
  // The first samples exist after a period of the metrics, and they count when the pod was ready for a whole window.
  await run('wait', '--for=jsonpath={.spec.replicas}=2', 'deployment/busy', '--timeout=120s');
  await eventually(async () => (await events()) !== '', waitMs);
  const described = await run('describe', 'hpa', 'busy');
  t.regex(described, /New size: 2; reason: cpu resource utilization \(percentage of request\) above target/);
  t.regex(described, /ScalingActive +True +ValidMetricFound/);
  await run('delete', 'hpa,deployment', 'busy', '--timeout=60s');
});
