import {
  type ContainerConfig,
  type ContainerRuntime,
  type ContainerStatus,
  type Image,
  type ImageService,
  isRuntimeError,
} from '@keelson/container-runtime';
import { addAbortListener, type Clock, type Logger, removeAbortListener } from '@keelson/core/runtime';
import type { Container, Pod, Secret } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { PodEvents } from '../../base/events/event-recorder.ts';
import type { EnvironmentFacts } from '../../base/pod/environment-facts.ts';
import { fullNameOf, uidOf } from '../../base/pod/pod-spec.ts';
import { RestartBackoff } from '../../base/restart-backoff.ts';
import type { CpuManager } from '../../machine/cpus/cpu-manager.ts';
import { ImageProblem, type ImagePuller } from '../../machine/images/image-puller.ts';
import type { VolumePlaces } from '../../machine/volumes/pod-volumes.ts';
import type { SubPaths } from '../../machine/volumes/sub-path.ts';
import { VolumeProblem } from '../../machine/volumes/volume-problem.ts';
import { containerAnnotations, containerHash, containerLabels } from '../../runtime-view/runtime-objects.ts';
import { ContainerConfigError, containerEnvironment, expand } from '../environment/container-environment.ts';
import {
  containerMounts,
  containerSecurity,
  linuxResources,
  mustNotBeRoot,
  type ResourceFacts,
  type SecurityFacts,
  userOf,
} from './container-config.ts';
import { linkLog } from './container-files.ts';
import { runHook } from './hook-runner.ts';
import type { ContainerStart } from './pod-actions.ts';

/** Where the runtime cannot mount, the files of the service account are in the directory of this variable. */
const accountDirectoryVariable = 'KEELSON_SERVICE_ACCOUNT_DIRECTORY';

/** A signal that fires some time after another one, with a function that releases both. */
export interface LingeringSignal {
  readonly signal: AbortSignal;
  release(): void;
}

/** A signal that fires `ms` after `signal`, for work that should be finished if possible. */
export function lingeringSignal(signal: AbortSignal, clock: Clock, ms: number): LingeringSignal {
  const controller = new AbortController();
  let cancel = () => {};
  const linger = () => {
    cancel = clock.after(ms, () => controller.abort(signal.reason));
  };
  if (signal.aborted) linger();
  else addAbortListener(signal, linger);
  return {
    signal: controller.signal,
    release() {
      removeAbortListener(signal, linger);
      cancel();
    },
  };
}

/** Rejects a container that would run as root despite `runAsNonRoot`. @throws ContainerConfigError */
export async function checkUser(
  pod: Pod,
  container: Container,
  imageOf: () => Promise<Image | undefined>,
): Promise<void> {
  if (!mustNotBeRoot(pod, container)) return;
  const user = userOf(pod, container);
  if (user === 0) throw new ContainerConfigError("container's runAsUser breaks non-root policy");
  if (user !== undefined) return;
  const image = await imageOf();
  if (image?.uid !== undefined && image.uid !== 0) return;
  throw new ContainerConfigError(
    image?.username
      ? `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root`
      : 'container has runAsNonRoot and image will run as root',
  );
}

export interface ContainerStarterOptions {
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  readonly puller: ImagePuller;
  readonly cpus: Pick<CpuManager, 'place'>;
  readonly events: PodEvents;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly paths: AgentPaths;
  readonly subPaths: SubPaths;
  readonly callTimeoutMs: number;
  readonly security: SecurityFacts;
  readonly resources: ResourceFacts;
  /** Mount propagation of pods is honoured. */
  readonly mountPropagation: boolean;
}

/** The sandbox and the environment in which a container is started. */
export interface StartContext {
  readonly sandboxId: string;
  readonly podIps: readonly string[];
  readonly volumes: VolumePlaces;
  readonly pullSecrets: readonly Secret[];
  readonly environment: EnvironmentFacts;
  readonly hosts: string;
}

/**
 * How long the start of a container may continue after the end of its pod was requested. A container gets its preStop
 * hook and its grace period only when it is known to run. A start that takes longer is aborted.
 */
const startLingerMs = 2_000;

/** Starts containers one after another. Every obstacle is thrown as a {@link StartProblem}. */
export class ContainerStarter {
  readonly #options: ContainerStarterOptions;
  readonly #backoff = new RestartBackoff();

  constructor(options: ContainerStarterOptions) {
    this.#options = options;
  }

  /** @throws StartProblem, or the reason of the signal */
  async start(pod: Pod, start: ContainerStart, context: StartContext, signal: AbortSignal): Promise<void> {
    const { container } = start;
    this.#holdBack(pod, container, start.previous);
    try {
      const image = await this.#options.puller.ensure(pod, container, context.pullSecrets, signal);
      const config = await this.#config(pod, start, image, context, signal);
      await this.#run(pod, container, config, context, signal);
    } catch (error) {
      if (signal.aborted || error instanceof StartProblem) throw error;
      if (error instanceof ImageProblem) {
        this.#failed(pod, container, error.reason);
        throw new StartProblem(error.reason, error.message, error.retryAfterMs);
      }
      throw this.#problem(pod, container, 'CreateContainerConfigError', error);
    }
  }

  /** Removes the restart records of a pod. */
  forget(uid: string): void {
    this.#backoff.forget(`${uid} `);
  }

  #holdBack(pod: Pod, container: Container, previous: ContainerStatus | undefined): void {
    if (previous?.state !== 'exited' || previous.finishedAt === undefined) return;
    const { clock, events } = this.#options;
    const key = `${uidOf(pod)} ${container.name} ${containerHash(container)}`;
    const left = this.#backoff.remaining(key, previous.finishedAt, clock.now());
    if (left === 0) {
      this.#backoff.next(key, previous.finishedAt);
      return;
    }
    events.record(
      pod,
      'Warning',
      'BackOff',
      `Back-off restarting failed container ${container.name} in pod ${fullNameOf(pod)}`,
      container.name,
    );
    const seconds = this.#backoff.pauseMs(key) / 1000;
    const message = `back-off ${seconds}s restarting failed container=${container.name} pod=${fullNameOf(pod)}`;
    throw new StartProblem('CrashLoopBackOff', message, left);
  }

  async #config(
    pod: Pod,
    { container, attempt }: ContainerStart,
    image: string,
    context: StartContext,
    signal: AbortSignal,
  ): Promise<ContainerConfig> {
    const { runtime, images, events, paths, subPaths, security, resources, mountPropagation, callTimeoutMs } =
      this.#options;
    const { variables, skipped } = await containerEnvironment(pod, container, context.environment);
    if (skipped.length > 0) {
      const message = `Keys that are no names of environment variables were skipped: ${skipped.join(', ')}`;
      events.record(pod, 'Warning', 'InvalidEnvironmentVariableNames', message, container.name);
    }
    await checkUser(pod, container, () => images.imageStatus(image, { signal, timeoutMs: callTimeoutMs }));
    const { mounts, messageFile, accountDirectory } = await containerMounts(pod, container, {
      paths,
      subPaths,
      volumes: context.volumes,
      variables,
      attempt,
      canMount: runtime.capabilities.mounts,
      canMountExactly: runtime.capabilities.exactMounts,
      readonlyMounts: runtime.capabilities.readonlyMounts,
      propagation: mountPropagation,
      hosts: context.hosts,
    });
    const expanded = (texts: readonly string[]) => texts.map((text) => expand(text, (name) => variables.get(name)));
    const stopSignal = container.lifecycle?.stopSignal;
    const cpusetCpus = await this.#options.cpus.place(pod, container);
    return {
      metadata: { name: container.name, attempt },
      image,
      ...(container.command?.length ? { command: expanded(container.command) } : {}),
      ...(container.args?.length ? { args: expanded(container.args) } : {}),
      ...(container.workingDir ? { workingDir: container.workingDir } : {}),
      env: [
        ...[...variables].map(([name, value]) => ({ name, value })),
        ...(accountDirectory === undefined ? [] : [{ name: accountDirectoryVariable, value: accountDirectory }]),
      ],
      mounts,
      labels: containerLabels(pod, container),
      annotations: containerAnnotations(pod, container, messageFile),
      logPath: `${container.name}_${attempt}.log`,
      ...(container.stdin === true ? { stdin: true } : {}),
      ...(container.stdinOnce === true ? { stdinOnce: true } : {}),
      ...(container.tty === true ? { tty: true } : {}),
      ...(stopSignal ? { stopSignal } : {}),
      resources: { ...linuxResources(pod, container, resources), ...(cpusetCpus === undefined ? {} : { cpusetCpus }) },
      securityContext: containerSecurity(pod, container, security),
    };
  }

  async #run(
    pod: Pod,
    container: Container,
    config: ContainerConfig,
    context: StartContext,
    signal: AbortSignal,
  ): Promise<void> {
    const { runtime, events, clock, callTimeoutMs } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    let id: string;
    try {
      id = await runtime.createContainer(context.sandboxId, config, call);
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.#problem(pod, container, 'CreateContainerError', error);
    }
    events.record(pod, 'Normal', 'Created', `Created container ${container.name}`, container.name);
    const starting = lingeringSignal(signal, clock, startLingerMs);
    try {
      await runtime.startContainer(id, { ...call, signal: starting.signal });
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.#problem(pod, container, 'RunContainerError', error);
    } finally {
      starting.release();
    }
    events.record(pod, 'Normal', 'Started', `Started container ${container.name}`, container.name);
    if (runtime.capabilities.logs) await linkLog(pod, container, id, config.logPath ?? '', this.#options);
    await this.#postStart(pod, container, id, context.podIps[0], signal);
  }

  async #postStart(
    pod: Pod,
    container: Container,
    id: string,
    podIp: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const handler = container.lifecycle?.postStart;
    if (!handler) return;
    const { runtime, clock, events, callTimeoutMs } = this.#options;
    try {
      await runHook(handler, { containerId: id, container, podIp }, runtime, clock, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const message = `PostStartHook failed: ${textOf(error)}`;
      events.record(pod, 'Warning', 'FailedPostStartHook', message, container.name);
      const gracePeriodMs = Number(pod.spec.terminationGracePeriodSeconds ?? 2) * 1000;
      await runtime.stopContainer(id, { gracePeriodMs }, { signal, timeoutMs: gracePeriodMs + callTimeoutMs });
      throw new StartProblem('PostStartHookError', message);
    }
  }

  #problem(pod: Pod, container: Container, reason: StartProblem['reason'], error: unknown): StartProblem {
    const message = textOf(error);
    const known = isRuntimeError(error) || error instanceof ContainerConfigError || error instanceof VolumeProblem;
    if (!known)
      this.#options.logger.warn('starting a container failed', {
        component: 'agent',
        pod: fullNameOf(pod),
        err: error,
      });
    this.#failed(pod, container, message);
    return new StartProblem(reason, message);
  }

  #failed(pod: Pod, container: Container, message: string): void {
    this.#options.events.record(pod, 'Warning', 'Failed', `Error: ${message}`, container.name);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a container was not started; `reason` is the reason of its waiting state. */
export class StartProblem extends Error {
  readonly reason: string;
  /** When the start is retried; undefined = at the next regular sync of the pod. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'StartProblem';
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
