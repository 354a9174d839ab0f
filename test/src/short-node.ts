// An agent on the process runtime whose whole directory is on a small disk, so that it runs short of what the machine
// really has. Runs as a process of its own, in a mount namespace that its parent made. Words: directory, a folder of
// manifests, options of the agent. It reports which pods were evicted, in order, as soon as only those named `quiet`
// run.
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type EventRecorder, systemMounter } from '@keelson/agent';
import { createProcessRuntime } from '@keelson/runtime-process';
import { eventually } from '@keelson/testing';
import { startAgentNode } from './agent-node.ts';

const [dir = '', manifests = '', ...words] = process.argv.slice(2);
const engine = await createProcessRuntime({ stateDirectory: join(dir, 'runtime'), nodeIp: '192.0.2.1' });
const evicted: { readonly pod: string; readonly message: string }[] = [];
const recorder: EventRecorder = {
  record: ({ name: pod }, _, reason, message) => {
    if (reason === 'Evicted') evicted.push({ pod, message });
  },
};
await mkdir(join(dir, 'agent'));
const common = [`--pod-manifest-path=${manifests}`, '--file-check-frequency=1s', '--volume-stats-agg-period=200ms'];
const node = await startAgentNode({
  name: 'short',
  engine,
  words: [...common, ...words],
  dir,
  events: recorder,
  mounter: systemMounter(),
});
const pods = () => node.agent.state.pods();
const isQuiet = ({ metadata }: ReturnType<typeof pods>[number]) => metadata?.name === 'quiet-short';
await eventually(() => pods().length === 2, 20_000);
await eventually(
  () => pods().every((pod) => pod.status?.phase === (isQuiet(pod) ? 'Running' : 'Failed')),
  30_000,
).catch(() => {});
const phases = Object.fromEntries(pods().map(({ metadata, status }) => [metadata?.name, status?.phase]));
for (const name of await readdir(manifests)) await rm(join(manifests, name));
await eventually(async () => (await engine.runtime.listPodSandboxes()).length === 0, 20_000);
await node.stop();
await engine.runtime[Symbol.asyncDispose]();
process.stdout.write(`${JSON.stringify({ evicted, phases })}\n`);
