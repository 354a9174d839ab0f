import { readFile } from 'node:fs/promises';
import type { ContainerRuntime } from '@keelson/container-runtime';
import type { Pod, Secret } from '@keelson/kinds';
import type { AgentPaths } from '../base/agent-paths.ts';
import type { AgentConfig } from '../base/config/agent-config.ts';
import type { PodEvents } from '../base/events/event-recorder.ts';
import type { EnvironmentFacts } from '../base/pod/environment-facts.ts';
import type { ObjectReader } from '../base/pod/object-reader.ts';
import { fullNameOf, uidOf } from '../base/pod/pod-spec.ts';
import type { PodCgroups } from '../machine/cgroups/pod-cgroups.ts';
import type { VolumePlaces } from '../machine/volumes/pod-volumes.ts';
import type { PodRuntimeState } from '../runtime-view/runtime-objects.ts';
import type { StartContext } from './containers/container-starter.ts';
import type { PodActions } from './containers/pod-actions.ts';
import {
  hostNetworkHostsFile,
  hostsFile,
  parseResolvConf,
  podDns,
  sandboxConfig,
} from './containers/sandbox-config.ts';

/** Facts of the node that pods depend on. */
export interface NodeFacts {
  /** Addresses of the node, the main one first. */
  hostIps(): readonly string[];
  /** The resources that pods can request. */
  allocatable(): Readonly<Record<string, string>>;
  /** The network of the runtime is ready. */
  networkReady(): boolean;
}

export interface StartPreparationOptions {
  readonly config: AgentConfig;
  readonly runtime: ContainerRuntime;
  readonly objects: ObjectReader;
  /** Absent: without an API server. */
  readonly tokens?: EnvironmentFacts['tokens'];
  readonly events: PodEvents;
  readonly node: NodeFacts;
  readonly paths: AgentPaths;
  readonly cgroups: PodCgroups;
  readonly callTimeoutMs: number;
}

/** The runtime failed to create the sandbox of a pod; an event has already been recorded. */
export class SandboxProblem extends Error {
  constructor(cause: unknown) {
    super(`failed to create pod sandbox: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'SandboxProblem';
  }
}

/** Prepares the sandbox and the context in which the containers of a pod are started. */
export class StartPreparation {
  readonly #options: StartPreparationOptions;

  constructor(options: StartPreparationOptions) {
    this.#options = options;
  }

  /**
   * Returns the sandbox of the decision, or creates a new one.
   *
   * @throws SandboxProblem, or the reason of the signal
   */
  async sandbox(
    pod: Pod,
    actions: PodActions,
    signal: AbortSignal,
  ): Promise<Pick<StartContext, 'sandboxId' | 'podIps'>> {
    const { runtime, config, paths, events, cgroups, callTimeoutMs } = this.#options;
    if (actions.sandbox !== undefined) return { sandboxId: actions.sandbox.id, podIps: actions.sandbox.ips };
    const call = { signal, timeoutMs: callTimeoutMs };
    try {
      const { dns, warnings } = podDns(pod, config.dns, await this.#machineDns());
      for (const { reason, message } of warnings) events.record(pod, 'Warning', reason, message);
      const sandboxId = await runtime.runPodSandbox(
        sandboxConfig(pod, actions.sandboxAttempt ?? 0, {
          isolatePids: config.isolatePids,
          seccompRoot: config.seccompRoot,
          logDirectory: paths.podLogs(uidOf(pod)),
          dns,
          cgroupParent: cgroups.parentOf(pod),
        }),
        call,
      );
      const { ips } = await runtime.podSandboxStatus(sandboxId, call);
      return { sandboxId, podIps: ips };
    } catch (error) {
      if (signal.aborted) throw error;
      const problem = new SandboxProblem(error);
      events.record(pod, 'Warning', 'FailedCreatePodSandBox', `F${problem.message.slice(1)}`);
      throw problem;
    }
  }

  async #machineDns(): Promise<ReturnType<typeof parseResolvConf> | undefined> {
    const { resolvConf } = this.#options.config.dns;
    return resolvConf === '' ? undefined : parseResolvConf(await readFile(resolvConf, 'utf8'));
  }

  /** The context that starting a container needs in addition to its specification. */
  async startContext(
    pod: Pod,
    state: PodRuntimeState,
    sandbox: Pick<StartContext, 'sandboxId' | 'podIps'>,
    volumes: VolumePlaces,
  ): Promise<StartContext> {
    const { config, node } = this.#options;
    const environment = this.environment(pod, state);
    const hostNetwork = pod.spec.hostNetwork === true;
    const podIps = hostNetwork || sandbox.podIps.length === 0 ? node.hostIps() : sandbox.podIps;
    const hosts = hostNetwork
      ? hostNetworkHostsFile(pod, await readFile('/etc/hosts', 'utf8').catch(() => ''))
      : hostsFile(pod, sandbox.podIps, config.dns.domain);
    return {
      ...sandbox,
      volumes,
      pullSecrets: await this.#pullSecrets(pod),
      environment: { ...environment, place: { ...environment.place, podIps } },
      hosts,
    };
  }

  environment(pod: Pod, state: PodRuntimeState): EnvironmentFacts {
    const { node, config, objects, tokens } = this.#options;
    const hostIps = node.hostIps();
    const podIps = pod.spec.hostNetwork === true ? hostIps : (state.sandboxes[0]?.ips ?? []);
    return {
      place: { nodeName: config.nodeName, hostIps, podIps },
      objects,
      allocatable: node.allocatable(),
      ...(tokens ? { tokens } : {}),
    };
  }

  /** A missing secret is reported as an event and skipped: the image may be present, or public. */
  async #pullSecrets(pod: Pod): Promise<Secret[]> {
    const { objects, events } = this.#options;
    const found: Secret[] = [];
    for (const { name = '' } of pod.spec.imagePullSecrets ?? []) {
      const secret = await objects.secret(pod.metadata?.namespace ?? '', name).catch(() => undefined);
      if (secret !== undefined) found.push(secret);
      else
        events.record(
          pod,
          'Warning',
          'FailedToRetrieveImagePullSecret',
          `Unable to retrieve image pull secret ${name} for ${fullNameOf(pod)}`,
        );
    }
    return found;
  }
}
