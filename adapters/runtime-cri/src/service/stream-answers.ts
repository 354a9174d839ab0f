import {
  type ContainerId,
  type ContainerRuntime,
  RuntimeError,
  type RuntimeStreaming,
  type StreamRequest,
} from '@keelson/container-runtime';
import { type ProcessTask, upgradeToPorts, upgradeToProcess } from '@keelson/container-streams';
import { Calls } from '../api/calls.ts';
import { type Answer, answer } from './answer.ts';
import { findId } from './find-id.ts';
import type { StreamServer } from './streams/stream-server.ts';

interface WantedStreams {
  readonly stdin?: boolean | undefined;
  readonly stdout?: boolean | undefined;
  readonly stderr?: boolean | undefined;
  readonly tty?: boolean | undefined;
}

/**
 * The calls that are answered with the address of a stream. What is wrong with the subject is said at once, not in the
 * stream.
 */
export function streamAnswers(runtime: ContainerRuntime, server: StreamServer): readonly Answer[] {
  const running = async (word = '', signal?: AbortSignal): Promise<ContainerId> => {
    const options = signal && { signal };
    const id = await findId(word, (exact) => runtime.listContainers(exact === undefined ? {} : { id: exact }, options));
    const { state } = await runtime.containerStatus(id, options);
    if (state !== 'running') throw new RuntimeError('InvalidState', `container ${id} is ${state}, not running`);
    return id;
  };
  return [
    answer(Calls.exec, async ({ containerId, cmd = [], ...wanted }, signal) => {
      const exec = methodOf(runtime, 'exec');
      if (cmd.length === 0) throw new RuntimeError('InvalidArgument', 'a command is needed');
      const id = await running(containerId, signal);
      const request = { ...streamsOf(wanted), command: cmd };
      const task = taskOf(() => exec(id, request), 'error executing command in container');
      const url = await server.offer({
        kind: 'exec',
        serve: (upgrade, _query, limits) => upgradeToProcess(upgrade, request, task, limits),
      });
      return { url };
    }),
    answer(Calls.attach, async ({ containerId, ...wanted }, signal) => {
      const attach = methodOf(runtime, 'attach');
      const id = await running(containerId, signal);
      const request = streamsOf(wanted);
      const task = taskOf(() => attach(id, request), 'error attaching to container');
      const url = await server.offer({
        kind: 'attach',
        serve: (upgrade, _query, limits) => upgradeToProcess(upgrade, request, task, limits),
      });
      return { url };
    }),
    answer(Calls.portForward, async ({ podSandboxId = '', port: ports = [] }, signal) => {
      const portForward = methodOf(runtime, 'portForward');
      const id = await findId(podSandboxId, (exact) =>
        runtime.listPodSandboxes(exact === undefined ? {} : { id: exact }, { signal }),
      );
      const { state } = await runtime.podSandboxStatus(id, { signal });
      if (state !== 'ready') throw new RuntimeError('InvalidState', `sandbox ${id} is not ready`);
      const source = { label: `sandbox ${id}`, open: (port: number) => portForward(id, port) };
      const url = await server.offer({
        kind: 'portforward',
        serve: (upgrade, query, limits) => upgradeToPorts(upgrade, () => portsOf(query, ports), source, limits),
      });
      return { url };
    }),
  ];
}

function taskOf(begin: ProcessTask['begin'], failure: string): ProcessTask {
  return { begin, endOf: (exitCode) => ({ exitCode }), failure };
}

function methodOf<N extends keyof RuntimeStreaming>(runtime: ContainerRuntime, name: N): Required<RuntimeStreaming>[N] {
  const method = runtime.streaming[name];
  if (method === undefined) throw new RuntimeError('Unsupported', `the runtime ${runtime.name} has no ${name}`);
  return method.bind(runtime.streaming) as Required<RuntimeStreaming>[N];
}

/** @throws `InvalidArgument` for what the protocol forbids */
function streamsOf({ stdin = false, stdout = false, stderr = false, tty = false }: WantedStreams): StreamRequest {
  if (tty && stderr) throw new RuntimeError('InvalidArgument', 'a terminal has no stderr of its own');
  if (!(stdin || stdout || stderr)) throw new RuntimeError('InvalidArgument', 'at least one stream must be asked for');
  return { stdin, stdout, stderr, tty };
}

/** The ports of the connection, else those that were asked for with the call. */
function portsOf(query: URLSearchParams, asked: readonly number[]): readonly number[] {
  const given = query.getAll('port').flatMap((text) => text.split(',').map(Number));
  const ports = given.length > 0 ? given : asked;
  return ports.filter((port) => Number.isInteger(port) && port > 0 && port < 65_536);
}
