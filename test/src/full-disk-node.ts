// An agent on the process runtime whose whole directory is on a small disk. Runs as a process of its own, in a mount
// namespace that its parent made. Words: directory, image source, options of the agent. It pulls images, keeps a
// container of the last, and reports their states.
import { join } from 'node:path';
import { createAgent, type EventRecorder, parseOptions, resolveConfig } from '@keelson/agent';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { createProcessRuntime } from '@keelson/runtime-process';
import { eventually } from '@keelson/testing';

const [dir = '', source = '', wanted = '0', ...words] = process.argv.slice(2);
const engine = await createProcessRuntime({
  stateDirectory: join(dir, 'runtime'),
  imageSources: [source],
  nodeIp: '192.0.2.1',
});
const events: string[] = [];
const recorder: EventRecorder = { record: (_, type, reason) => events.push(`${type} ${reason}`) };
const common = ['--hostname-override=full', `--root-dir=${join(dir, 'agent')}`, '--resolv-conf=', '--eviction-hard='];
const { config } = resolveConfig(parseOptions([...common, ...words]), {
  hostname: () => 'full',
  fileExists: () => false,
});
const machine = {
  cores: 1,
  memoryBytes: 1 << 30,
  hostName: 'full',
  machineId: '',
  systemUuid: '',
  bootId: '',
  kernelVersion: '',
  osImage: '',
  architecture: 'amd64',
  addresses: ['192.0.2.1'],
};
const agent = createAgent(config, {
  ...engine,
  pods: { subscribe: () => () => {}, pods: () => [], seenAllSources: () => false },
  machine,
  events: recorder,
  clock: systemClock,
  logger: silentLogger,
  logRoot: join(dir, 'log'),
  periods: { imageGarbage: 100, housekeeping: 60_000 },
});

const { runtime, images } = engine;
const names = ['test.local/first:1', 'test.local/second:1', 'test.local/used:1'];
for (const name of names) await images.pullImage(name);
const sandbox = await runtime.runPodSandbox({ metadata: { name: 'p', namespace: 'default', uid: 'u', attempt: 0 } });
await runtime.createContainer(sandbox, {
  metadata: { name: 'c', attempt: 0 },
  image: 'test.local/used:1',
  command: ['/none'],
});
const listed = async () =>
  (await images.listImages()).flatMap(({ repoTags }) => repoTags).filter((tag) => names.includes(tag));
const usedPercent = async () => {
  const [disk] = await images.imageFsInfo();
  return disk === undefined ? -1 : Math.ceil(100 - (disk.availableBytes * 100) / disk.capacityBytes);
};
const before = await usedPercent();
await agent.start();
await eventually(async () => (await listed()).length <= Number(wanted) || events.length > 0, 20_000);
const left = await listed();
// The files of an image go after its name.
await eventually(async () => (await usedPercent()) < before, 20_000);
const after = await usedPercent();
await agent.stop();
await runtime.stopPodSandbox(sandbox);
await runtime.removePodSandbox(sandbox);
await runtime[Symbol.asyncDispose]();
process.stdout.write(`${JSON.stringify({ before, after, left, events })}\n`);
