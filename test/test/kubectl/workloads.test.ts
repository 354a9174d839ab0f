import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';

const waitMs = 60_000;
const command = process.platform === 'linux' ? findKubectl() : undefined;
const withKubectl = command === undefined ? test.skip : test.serial;

interface Objects {
  readonly items: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly annotations?: Record<string, string> };
    readonly status?: { readonly phase?: string };
  }[];
}

let kubectl: Kubectl;
let stop = async () => {};

test.before(async (t) => {
  t.timeout(120_000);
  if (command === undefined) return;
  const folder = await temporaryDirectory();
  const server = await startKeelson(
    join(folder, 'data'),
    ['--log-level', 'warn', '--agent=false', '--fake-nodes', '3'],
    'up',
  );
  kubectl = new Kubectl(command, server.kubeconfig, folder);
  stop = async () => {
    await server.stop();
    await removeDirectory(folder);
  };
  const nodes = async () => (await kubectl.try(['get', 'nodes', '--no-headers'])).stdout.match(/ Ready /g)?.length;
  await eventually(async () => (await nodes()) === 3, waitMs);
});

test.after.always(() => stop());

const list = async (...args: string[]) => JSON.parse(await kubectl.run(['get', ...args, '-o', 'json'])) as Objects;
const images = async (selector: string) => {
  const path = '{range .items[*]}{.spec.containers[0].image}{"\\n"}{end}';
  const running = '--field-selector=status.phase=Running';
  return (await kubectl.run(['get', 'pods', '-l', selector, running, '-o', `jsonpath=${path}`])).trim().split('\n');
};
const apply = (object: object) => kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(object) });

function workload(kind: string, name: string, spec: object = {}) {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app:1' }] } },
      ...spec,
    },
  };
}

withKubectl('kubectl rolls a Deployment out, back, pauses, resumes, restarts and scales it', async (t) => {
  t.timeout(240_000);
  await apply(workload('Deployment', 'web', { replicas: 3 }));
  const status = () => kubectl.run(['rollout', 'status', 'deployment/web', '--timeout=50s']);
  t.regex(await status(), /deployment "web" successfully rolled out\n$/);
  t.regex(await kubectl.run(['get', 'deployment', 'web', '--no-headers']), /^web +3\/3 +3 +3 /);

  await kubectl.run(['set', 'image', 'deployment/web', 'main=app:2']);
  await status();
  t.deepEqual(await images('app=web'), ['app:2', 'app:2', 'app:2']);
  t.regex(
    await kubectl.run(['rollout', 'history', 'deployment/web']),
    /REVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/,
  );
  t.regex(await kubectl.run(['rollout', 'history', 'deployment/web', '--revision=1']), /Image:\s+app:1\n/);
  t.is(await kubectl.run(['rollout', 'undo', 'deployment/web']), 'deployment.apps/web rolled back\n');
  await status();
  t.deepEqual(await images('app=web'), ['app:1', 'app:1', 'app:1']);
  t.regex(await kubectl.run(['rollout', 'history', 'deployment/web']), /\n2 +<none>\n3 +<none>\n/);

  await kubectl.run(['rollout', 'pause', 'deployment/web']);
  await kubectl.run(['set', 'image', 'deployment/web', 'main=app:3']);
  await kubectl.run(['scale', 'deployment/web', '--replicas=5']);
  await kubectl.run(['wait', 'deployment/web', '--for=jsonpath={.status.availableReplicas}=5', '--timeout=50s']);
  t.deepEqual(await images('app=web'), Array(5).fill('app:1'));
  await kubectl.run(['rollout', 'resume', 'deployment/web']);
  await status();
  t.deepEqual(await images('app=web'), Array(5).fill('app:3'));

  t.is(await kubectl.run(['rollout', 'restart', 'deployment/web']), 'deployment.apps/web restarted\n');
  await status();
  await kubectl.run(['wait', 'deployment/web', '--for=condition=Available', '--timeout=50s']);
  const described = await kubectl.run(['describe', 'deployment', 'web']);
  t.regex(described, /Progressing +True +NewReplicaSetAvailable/);
  t.regex(described, /ScalingReplicaSet.*Scaled up replica set web-\w+ from 0 to 3/);
});

withKubectl('each propagation policy of a delete has its effect on replica sets and pods', async (t) => {
  t.timeout(240_000);
  const remaining = async (name: string) => {
    const { items } = await list('replicasets,pods', '-l', `app=${name}`);
    return ['ReplicaSet', 'Pod'].map((kind) => items.filter((item) => item.kind === kind).length);
  };
  for (const [policy, sets, pods] of [
    ['background', 0, 0],
    ['foreground', 0, 0],
    ['orphan', 1, 2],
  ] as const) {
    const name = `del-${policy}`;
    await apply(workload('Deployment', name, { replicas: 2 }));
    await kubectl.run(['rollout', 'status', `deployment/${name}`, '--timeout=50s']);
    await kubectl.run(['delete', 'deployment', name, `--cascade=${policy}`, '--timeout=50s']);
    if (policy === 'foreground') t.deepEqual(await remaining(name), [0, 0], 'dependents are deleted first');
    await eventually(async () => (await remaining(name)).join() === `${sets},${pods}`, waitMs);
  }
  // A new deployment adopts the replica set that the deleted one has left.
  await apply(workload('Deployment', 'del-orphan', { replicas: 2 }));
  await kubectl.run(['rollout', 'status', 'deployment/del-orphan', '--timeout=50s']);
  t.deepEqual(await remaining('del-orphan'), [1, 2]);
});

withKubectl('kubectl rolls a DaemonSet and a StatefulSet out and back', async (t) => {
  t.timeout(240_000);
  await apply(workload('DaemonSet', 'agent'));
  await apply(workload('StatefulSet', 'db', { serviceName: 'db', replicas: 2 }));
  for (const name of ['daemonset/agent', 'statefulset/db']) {
    const status = () => kubectl.run(['rollout', 'status', name, '--timeout=50s']);
    const selector = `app=${name.slice(name.indexOf('/') + 1)}`;
    await status();
    const pods = await images(selector);
    t.deepEqual(pods, Array(name === 'daemonset/agent' ? 3 : 2).fill('app:1'));
    await kubectl.run(['set', 'image', name, 'main=app:2']);
    await status();
    t.deepEqual(
      await images(selector),
      pods.map(() => 'app:2'),
    );
    t.regex(await kubectl.run(['rollout', 'history', name]), /\n1 +<none>\n2 +<none>\n/);
    t.regex(await kubectl.run(['rollout', 'undo', name]), /rolled back\n$/);
    await status();
    t.deepEqual(await images(selector), pods);
    t.regex(await kubectl.run(['rollout', 'history', name]), /\n2 +<none>\n3 +<none>\n/);
  }
  t.deepEqual(
    (await list('pods', '-l', 'app=db')).items.map(({ metadata }) => metadata.name),
    ['db-0', 'db-1'],
  );
});
