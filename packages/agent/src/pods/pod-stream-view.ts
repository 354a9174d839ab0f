import type { Duplex } from 'node:stream';
import type {
  ContainerId,
  ContainerRuntime,
  ExecRequest,
  ExecSyncResult,
  ProcessStreams,
  RuntimeStreaming,
  StreamRequest,
} from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import { PodQueryError } from '../base/contracts/pod-queries.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import type { ContainerAddress, PodAddress, PodStreams } from '../base/contracts/pod-streams.ts';
import { isMirrorPod, namedContainersOf, uidOf } from '../base/pod/pod-spec.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';

export interface PodStreamViewOptions {
  readonly config: Pick<PodConfigReader, 'pods'>;
  readonly states: Pick<RuntimePods, 'get'>;
  readonly runtime: ContainerRuntime;
}

/** Exec, attach and port-forward targets, from the last observed states of pods. */
export class PodStreamView implements PodStreams {
  readonly #options: PodStreamViewOptions;

  constructor(options: PodStreamViewOptions) {
    this.#options = options;
  }

  exec(address: ContainerAddress, request: ExecRequest): () => Promise<ProcessStreams> {
    const id = this.#container(address);
    const exec = this.#streaming('exec');
    return () => exec(id, request);
  }

  attach(address: ContainerAddress, request: StreamRequest): () => Promise<ProcessStreams> {
    const id = this.#container(address);
    const attach = this.#streaming('attach');
    return () => attach(id, request);
  }

  portForward(address: PodAddress): (port: number) => Promise<Duplex> {
    const pod = this.#pod(address);
    const sandbox = this.#options.states.get(uidOf(pod))?.sandboxes[0];
    if (sandbox?.state !== 'ready')
      throw new PodQueryError('Invalid', `unable to forward port because pod "${address.pod}" is not running`);
    const portForward = this.#streaming('portForward');
    return (port) => portForward(sandbox.id, port);
  }

  async run(address: ContainerAddress, command: readonly string[], signal: AbortSignal): Promise<ExecSyncResult> {
    return this.#options.runtime.execSync(this.#container(address), { command }, { signal });
  }

  #streaming<K extends keyof RuntimeStreaming>(name: K): NonNullable<RuntimeStreaming[K]> {
    const { name: runtime, streaming } = this.#options.runtime;
    const found = streaming[name];
    if (found === undefined)
      throw new PodQueryError('Unsupported', `the container runtime ${runtime} does not support ${name}`);
    return found.bind(streaming) as NonNullable<RuntimeStreaming[K]>;
  }

  /** A static pod is found by its own UID and by that of its mirror pod. */
  #pod({ namespace, pod: name, uid }: PodAddress): Pod {
    const named = this.#options.config
      .pods()
      .filter(({ metadata }) => metadata?.name === name && metadata.namespace === namespace);
    const own = named.filter((pod) => !isMirrorPod(pod));
    const found =
      own.find((pod) => uid === undefined || uidOf(pod) === uid) ??
      (named.some((pod) => uidOf(pod) === uid) ? own[0] : undefined);
    if (found === undefined) throw new PodQueryError('NotFound', `pod "${name}" does not exist`);
    return found;
  }

  #container(address: ContainerAddress): ContainerId {
    const pod = this.#pod(address);
    const label = `container "${address.container}"`;
    if (!namedContainersOf(pod).some(({ name }) => name === address.container))
      throw new PodQueryError('NotFound', `${label} not found in pod "${address.pod}"`);
    const containers = this.#options.states.get(uidOf(pod))?.containers ?? [];
    const found = containers.find(({ metadata, state }) => metadata.name === address.container && state === 'running');
    if (found === undefined) throw new PodQueryError('Invalid', `${label} in pod "${address.pod}" is not running`);
    return found.id;
  }
}
