import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { constants } from 'node:os';
import { join, resolve, sep } from 'node:path';
import {
  type Container,
  type ContainerConfig,
  type ContainerFilter,
  type ContainerRuntime,
  type ContainerStats,
  type ContainerStatus,
  EventFeed,
  type ExecSyncRequest,
  type ExecSyncResult,
  findNodeIp,
  matchesContainer,
  matchesSandbox,
  type PodSandbox,
  type PodSandboxConfig,
  type PodSandboxStatus,
  type RuntimeCapabilities,
  type RuntimeContext,
  RuntimeError,
  type RuntimeEvent,
  type RuntimeStatus,
  type RuntimeVersion,
  type SandboxFilter,
  type StopRequest,
} from '@keelson/container-runtime';
import { ChildContainer } from './child-container.ts';
import type { HostImages } from './host-images.ts';
import { ownerVariable } from './leftovers.ts';

/** What this runtime can do. The agent rejects pods that require more, and the suite skips the cases for the rest. */
export const capabilities: RuntimeCapabilities = {
  rootFilesystem: 'host',
  podNetwork: false,
  hostNetwork: true,
  mounts: false,
  readonlyMounts: false,
  exactMounts: false,
  users: false,
  memoryLimits: false,
  cpuLimits: false,
  updateResources: false,
  containerPid: false,
  sharedPid: false,
  privileged: false,
  capabilitySets: false,
  readonlyRootfs: false,
  noNewPrivileges: false,
  seccomp: false,
  apparmor: false,
  sysctls: false,
  hostPorts: false,
  devices: false,
  tty: false,
  exec: false,
  attach: false,
  portForward: false,
  events: true,
  stats: false,
  logs: true,
  pullProgress: false,
  pull: false,
  survivesRestart: false,
};

interface Sandbox {
  readonly config: PodSandboxConfig;
  readonly createdAt: number;
  ready: boolean;
}

/** Pods as child processes of the agent: everything is in memory, and everything ends with the agent. */
export class ChildRuntime implements ContainerRuntime {
  readonly name = 'child';
  readonly capabilities = capabilities;
  readonly streaming = {};
  readonly #context: RuntimeContext;
  readonly #images: HostImages;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #feed: EventFeed;
  /** In the order of their creation. */
  readonly #sandboxes = new Map<string, Sandbox>();
  readonly #containers = new Map<string, ChildContainer>();

  constructor(context: RuntimeContext, images: HostImages, environment: Readonly<Record<string, string>>) {
    this.#context = context;
    this.#images = images;
    const { PATH = '/usr/bin:/bin' } = process.env;
    this.#environment = { PATH, ...environment, [ownerVariable]: context.stateDirectory };
    this.#feed = new EventFeed(() => context.clock.now());
  }

  async version(): Promise<RuntimeVersion> {
    return { runtimeName: this.name, runtimeVersion: '0.1.0', runtimeApiVersion: 'v1' };
  }

  async status(): Promise<RuntimeStatus> {
    return {
      conditions: [
        { type: 'RuntimeReady', status: true },
        { type: 'NetworkReady', status: true },
      ],
    };
  }

  async runPodSandbox(config: PodSandboxConfig): Promise<string> {
    const { name, namespace, uid, attempt } = config.metadata;
    for (const { config: other } of this.#sandboxes.values()) {
      const { metadata } = other;
      if (metadata.uid === uid && metadata.attempt === attempt && metadata.name === name)
        throw new RuntimeError('AlreadyExists', `the sandbox ${namespace}/${name}, attempt ${attempt}, exists`);
    }
    const id = randomUUID().replaceAll('-', '');
    const sandbox: Sandbox = { config, createdAt: this.#context.clock.now(), ready: false };
    // Before the first `await`, so that a second call with the same metadata is rejected.
    this.#sandboxes.set(id, sandbox);
    try {
      if (config.logDirectory !== undefined) await mkdir(config.logDirectory, { recursive: true, mode: 0o755 });
    } catch (error) {
      this.#sandboxes.delete(id);
      throw new RuntimeError('Internal', (error as Error).message, { cause: error });
    }
    sandbox.ready = true;
    this.#publish('sandboxReady', id);
    return id;
  }

  async stopPodSandbox(id: string): Promise<void> {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) return;
    const wasReady = sandbox.ready;
    sandbox.ready = false;
    await Promise.all(this.#containersOf(id).map((container) => container.stop(0)));
    if (wasReady) this.#publish('sandboxNotReady', id);
  }

  async removePodSandbox(id: string): Promise<void> {
    await this.stopPodSandbox(id);
    await Promise.all(this.#containersOf(id).map((container) => this.removeContainer(container.id)));
    if (this.#sandboxes.delete(id)) this.#publish('sandboxRemoved', id);
  }

  async podSandboxStatus(id: string): Promise<PodSandboxStatus> {
    const sandbox = this.#sandbox(id);
    return {
      ...snapshotOf(id, sandbox),
      ips: sandbox.ready ? [this.#context.nodeIp ?? findNodeIp()] : [],
      namespaces: { network: 'node', pid: 'node', ipc: 'node' },
    };
  }

  async listPodSandboxes(filter?: SandboxFilter): Promise<readonly PodSandbox[]> {
    const all = [...this.#sandboxes].map(([id, sandbox]) => snapshotOf(id, sandbox));
    return all.filter((sandbox) => matchesSandbox(sandbox, filter)).reverse();
  }

  async createContainer(sandboxId: string, config: ContainerConfig): Promise<string> {
    const sandbox = this.#sandbox(sandboxId);
    if (!sandbox.ready) throw new RuntimeError('InvalidState', `the sandbox ${sandboxId} is not ready`);
    const { name, attempt } = config.metadata;
    if (this.#containersOf(sandboxId).some(({ snapshot: { metadata } }) => isSame(metadata, config.metadata)))
      throw new RuntimeError('AlreadyExists', `the container ${name}, attempt ${attempt}, exists in ${sandboxId}`);
    const image = this.#images.find(config.image);
    if (image === undefined) throw new RuntimeError('ImageNotFound', `there is no image "${config.image}"`);
    requireSupported(config);
    const container: ChildContainer = new ChildContainer({
      sandboxId,
      config,
      imageId: image.id,
      environment: this.#environment,
      logPath: logPathOf(sandbox.config.logDirectory, config.logPath),
      clock: this.#context.clock,
      changed: (type) => this.#publish(type, sandboxId, container.id),
    });
    this.#containers.set(container.id, container);
    this.#publish('containerCreated', sandboxId, container.id);
    return container.id;
  }

  async startContainer(id: string): Promise<void> {
    await this.#container(id).start();
  }

  async stopContainer(id: string, { gracePeriodMs }: StopRequest): Promise<void> {
    await this.#containers.get(id)?.stop(gracePeriodMs);
  }

  async removeContainer(id: string): Promise<void> {
    const container = this.#containers.get(id);
    await container?.stop(0);
    if (container !== undefined && this.#containers.delete(id))
      this.#publish('containerRemoved', container.sandboxId, id);
  }

  async listContainers(filter?: ContainerFilter): Promise<readonly Container[]> {
    const all = [...this.#containers.values()].map(({ snapshot }) => snapshot);
    return all.filter((container) => matchesContainer(container, filter)).reverse();
  }

  async containerStatus(id: string): Promise<ContainerStatus> {
    return this.#container(id).status;
  }

  async reopenContainerLog(id: string): Promise<void> {
    await this.#container(id).reopenLog();
  }

  async execSync(id: string, request: ExecSyncRequest): Promise<ExecSyncResult> {
    const container = this.#container(id);
    container.requireRunning();
    return runCommand(request, container.place);
  }

  async listContainerStats(): Promise<readonly ContainerStats[]> {
    return [];
  }

  events({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterable<RuntimeEvent> {
    return this.#feed.stream(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#containers.values()].map((container) => container.stop(0)));
    this.#feed.close();
  }

  #publish(type: 'sandboxReady' | 'sandboxNotReady' | 'sandboxRemoved', sandboxId: string): void;
  #publish(
    type: 'containerCreated' | 'containerStarted' | 'containerExited' | 'containerRemoved',
    sandboxId: string,
    containerId: string,
  ): void;
  #publish(type: Exclude<RuntimeEvent['type'], 'resync'>, sandboxId: string, containerId?: string): void {
    const at = this.#context.clock.now();
    this.#feed.publish({ type, sandboxId, ...(containerId !== undefined && { containerId }), at } as RuntimeEvent);
  }

  #containersOf(sandboxId: string): ChildContainer[] {
    return [...this.#containers.values()].filter((container) => container.sandboxId === sandboxId);
  }

  #sandbox(id: string): Sandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) throw new RuntimeError('NotFound', `there is no sandbox ${id}`);
    return sandbox;
  }

  #container(id: string): ChildContainer {
    const container = this.#containers.get(id);
    if (container === undefined) throw new RuntimeError('NotFound', `there is no container ${id}`);
    return container;
  }
}

function snapshotOf(id: string, { config, createdAt, ready }: Sandbox): PodSandbox {
  const { metadata, labels = {}, annotations = {} } = config;
  return { id, metadata, state: ready ? 'ready' : 'notReady', createdAt, labels, annotations };
}

function isSame(a: Container['metadata'], b: Container['metadata']): boolean {
  return a.name === b.name && a.attempt === b.attempt;
}

/** What the capabilities exclude is rejected, except for limits and namespaces, which are ignored. */
function requireSupported({ command = [], args = [], mounts = [], devices = [], ...config }: ContainerConfig): void {
  if (command.length + args.length === 0)
    throw new RuntimeError('InvalidArgument', 'the image "host" has no command, the container must have one');
  const { privileged, runAsUser, readonlyRootfs } = config.securityContext ?? {};
  const unsupported = [
    mounts.length > 0 && 'mounts',
    devices.length > 0 && 'devices',
    config.tty && 'terminals',
    config.stdin && 'standard input',
    privileged && 'privileged containers',
    readonlyRootfs && 'read-only root file systems',
    runAsUser !== undefined && runAsUser !== process.getuid?.() && 'other users',
  ].filter((name) => typeof name === 'string');
  if (unsupported.length > 0)
    throw new RuntimeError('Unsupported', `the child runtime does not support ${unsupported.join(', ')}`);
}

function logPathOf(directory: string | undefined, path: string | undefined): string | undefined {
  if (directory === undefined || path === undefined) return undefined;
  const full = join(directory, path);
  if (!full.startsWith(resolve(directory) + sep))
    throw new RuntimeError('InvalidArgument', `the log path "${path}" is outside of the log directory`);
  return full;
}

function runCommand(
  { command, execTimeoutMs, maxOutputBytes }: ExecSyncRequest,
  place: { readonly env: Record<string, string>; readonly cwd: string },
): Promise<ExecSyncResult> {
  const [program = '', ...args] = command;
  return new Promise((resolveCall, reject) => {
    const options = {
      ...place,
      encoding: 'buffer',
      maxBuffer: maxOutputBytes ?? 16 << 20,
      timeout: execTimeoutMs ?? 0,
    };
    execFile(program, args, { ...options, encoding: 'buffer', killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      if (error === null) return resolveCall({ stdout, stderr, exitCode: 0 });
      const { code, signal, killed } = error;
      if (killed && execTimeoutMs !== undefined)
        return reject(new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`));
      if (typeof code === 'number') return resolveCall({ stdout, stderr, exitCode: code });
      if (signal) return resolveCall({ stdout, stderr, exitCode: 128 + constants.signals[signal] });
      reject(new RuntimeError('StartFailed', `${program}: ${error.message}`, { cause: error }));
    });
  });
}
