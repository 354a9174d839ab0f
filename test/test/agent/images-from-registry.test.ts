import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pod, Secret } from '@keelson/kinds';
import { createProcessRuntime } from '@keelson/runtime-process';
import { buildRoot, LoopbackRegistry, type RegistryBehaviour, type RegistryImage, tarOf } from '@keelson/test-support';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type AgentNode, scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

/** Processes with a root of their own need root. */
const asRoot = process.getuid?.() === 0 || process.env['CI'] ? test : test.skip;

const nodeName = 'puller';
const credentials = { username: 'user', password: 'pass' };
const cloudKey = JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key: 'key' });
const recorded: { reason: string; message: string; pod: string }[] = [];

let plane: TestPlane;
let node: AgentNode;
let image: RegistryImage;
/** An image that shares no layer with others, since existing layers are not pulled again. */
let ownImage: (name: string) => RegistryImage;
let cloudRegistry: LoopbackRegistry;
let cleanUp: () => Promise<void> = async () => {};

test.before(async () => {
  plane = await startTestPlane();
  const { dir, remove } = await scratchDirectory();
  mkdirSync(join(dir, 'root'));
  buildRoot(join(dir, 'root'));
  tarOf(join(dir, 'root'), join(dir, 'layer.tar'));
  image = { layers: [join(dir, 'layer.tar')], config: { Env: ['PATH=/bin'], Cmd: ['sh', '-c', 'cat /suite-file'] } };
  ownImage = (name) => {
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, name), randomBytes(2_000_000));
    tarOf(join(dir, name), join(dir, `${name}.tar`));
    return { ...image, layers: [...image.layers, join(dir, `${name}.tar`)] };
  };
  cloudRegistry = await LoopbackRegistry.open({ auth: { kind: 'basic', username: '_json_key', password: cloudKey } });
  const keyPath = join(dir, 'key.json');
  writeFileSync(keyPath, JSON.stringify({ ...JSON.parse(cloudKey), registries: [cloudRegistry.host] }));
  const engine = await createProcessRuntime({
    stateDirectory: join(dir, 'runtime'),
    nodeIp: '192.0.2.1',
    registries: {},
  });
  const words = [
    '--image-pull-progress-deadline=8s',
    '--registry-qps=0',
    '--serialize-image-pulls=false',
    `--cloud-b-json-key=${keyPath}`,
  ];
  const events = {
    record: (subject: { name: string }, _type: string, reason: string, message: string) =>
      recorded.push({ reason, message, pod: subject.name }),
  };
  node = await startAgentNode({ name: nodeName, engine, api: plane.api, words, dir, events });
  cleanUp = async () => {
    for (const { metadata } of (await pods().list()).items)
      await pods().delete(metadata?.name ?? '', { gracePeriodSeconds: 0 });
    await eventually(async () => (await engine.runtime.listPodSandboxes()).length === 0, 45_000);
    await node.stop();
    await engine.runtime[Symbol.asyncDispose]();
    await cloudRegistry[Symbol.asyncDispose]();
    await plane.close();
    await remove();
  };
});

test.after.always(() => cleanUp());

const pods = () => plane.client(Pod).namespace('default');
const statusOf = (name: string) => node.agent.state.pods().find(({ metadata }) => metadata?.name === name)?.status;
const waitingOf = (name: string) => statusOf(name)?.containerStatuses?.[0]?.state?.waiting;
const reasonsOf = (name: string) => recorded.filter(({ pod }) => pod === name).map(({ reason }) => reason);

async function registryFor(t: ExecutionContext, behaviour: RegistryBehaviour = {}): Promise<LoopbackRegistry> {
  t.timeout(90_000);
  const registry = await LoopbackRegistry.open(behaviour);
  t.teardown(() => registry[Symbol.asyncDispose]());
  registry.add('app:1', image);
  return registry;
}

async function run(name: string, reference: string, secrets: readonly string[] = []): Promise<void> {
  await pods().create({
    metadata: { name, namespace: 'default' },
    spec: {
      ...{ nodeName, hostNetwork: true, restartPolicy: 'Never', terminationGracePeriodSeconds: 1 },
      imagePullSecrets: secrets.map((secret) => ({ name: secret })),
      containers: [{ name: 'main', image: reference, imagePullPolicy: 'IfNotPresent' }],
    },
  });
}

async function addSecret(name: string, type: string, key: string, value: unknown): Promise<void> {
  const data = { [key]: Buffer.from(JSON.stringify(value)).toString('base64') };
  await plane
    .client(Secret)
    .namespace('default')
    .create({ metadata: { name, namespace: 'default' }, type, data });
}

/** The reasons of the waiting state in order, until the back-off. */
async function untilBackOff(name: string): Promise<string[]> {
  const seen: string[] = [];
  await eventually(() => {
    const reason = waitingOf(name)?.reason ?? '';
    if (reason !== '' && reason !== 'ContainerCreating' && seen.at(-1) !== reason) seen.push(reason);
    return reason === 'ImagePullBackOff';
  }, 45_000);
  return seen;
}

const succeeded = (name: string) => eventually(() => statusOf(name)?.phase === 'Succeeded', 45_000);

asRoot('an image of a registry is pulled and runs', async (t) => {
  const { host } = await registryFor(t);
  await run('public', `${host}/app:1`);
  await succeeded('public');
  t.deepEqual(reasonsOf('public').slice(0, 4), ['Pulling', 'Pulled', 'Created', 'Started']);
  t.regex(statusOf('public')?.containerStatuses?.[0]?.imageID ?? '', /sha256:[0-9a-f]{64}/);
});

for (const [type, key, value] of [
  ['kubernetes.io/dockerconfigjson', '.dockerconfigjson', (host: string) => ({ auths: { [host]: credentials } })],
  [
    'kubernetes.io/dockercfg',
    '.dockercfg',
    (host: string) => ({ [`http://${host}`]: { auth: Buffer.from('user:pass').toString('base64') } }),
  ],
] as const) {
  asRoot(`a private image is pulled with a secret of type ${type}`, async (t) => {
    const { host } = await registryFor(t, { auth: { kind: 'token', ...credentials } });
    const name = type.slice('kubernetes.io/'.length);
    await addSecret(name, type, key, value(host));
    await run(`private-${name}`, `${host}/app:1`, [name]);
    await succeeded(`private-${name}`);
    t.pass();
  });
}

asRoot('a private image with wrong credentials is ErrImagePull, then ImagePullBackOff', async (t) => {
  const { host } = await registryFor(t, { auth: { kind: 'basic', ...credentials } });
  await addSecret('wrong', 'kubernetes.io/dockerconfigjson', '.dockerconfigjson', {
    auths: { [host]: { ...credentials, password: 'wrong' } },
  });
  await run('bad-secret', `${host}/app:1`, ['wrong']);
  t.deepEqual(await untilBackOff('bad-secret'), ['ErrImagePull', 'ImagePullBackOff']);
  const failed = recorded.find(
    ({ pod, message }) => pod === 'bad-secret' && message.startsWith('Failed to pull image'),
  );
  t.regex(failed?.message ?? '', /rejected the credentials/);
  t.true(reasonsOf('bad-secret').includes('BackOff'));
});

asRoot('a missing pull secret is reported, and the image is pulled without it', async (t) => {
  const { host } = await registryFor(t);
  await run('no-secret', `${host}/app:1`, ['absent']);
  await succeeded('no-secret');
  t.true(reasonsOf('no-secret').includes('FailedToRetrieveImagePullSecret'));
});

asRoot('--cloud-b-json-key: its credentials are sent to the registry that the file names', async (t) => {
  t.timeout(90_000);
  cloudRegistry.add('app:1', image);
  await run('cloud', `${cloudRegistry.host}/app:1`);
  await succeeded('cloud');
  const sent = Buffer.from(`_json_key:${cloudKey}`).toString('base64');
  t.true(cloudRegistry.requests.some(({ authorization }) => authorization === `Basic ${sent}`));
});

asRoot('--image-pull-progress-deadline ends a stalled pull, and not a slow one', async (t) => {
  const still = await registryFor(t, { stallAfter: 100_000 });
  const slow = await registryFor(t, { slow: { chunkBytes: 20_000, everyMs: 100 } });
  still.add('own:1', ownImage('still'));
  slow.add('own:1', ownImage('slow'));
  await run('still', `${still.host}/own:1`);
  await run('slow', `${slow.host}/own:1`);
  t.deepEqual(await untilBackOff('still'), ['ErrImagePull', 'ImagePullBackOff']);
  t.true(recorded.some(({ pod, message }) => pod === 'still' && message.includes('no progress for 8 s')));
  await eventually(() => still.bodies.open === 0);
  t.not(waitingOf('slow')?.reason, 'ErrImagePull');
  await succeeded('slow');
  t.false(reasonsOf('slow').includes('Failed'));
});

asRoot('missing images and invalid names of images are reported', async (t) => {
  const { host } = await registryFor(t);
  await run('missing', `${host}/app:2`);
  await run('bad-name', 'Not-A-Name');
  t.deepEqual(await untilBackOff('missing'), ['ErrImagePull', 'ImagePullBackOff']);
  t.true(recorded.some(({ pod, message }) => pod === 'missing' && /does not exist/.test(message)));
  await eventually(() => waitingOf('bad-name')?.reason === 'InvalidImageName');
  t.true(reasonsOf('bad-name').includes('InspectFailed'));
});
