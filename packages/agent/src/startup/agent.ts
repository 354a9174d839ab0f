import type { AgentConfig } from '../base/config/agent-config.ts';
import { PressureState } from '../node/eviction/pressure.ts';
import { nodeIps } from '../node/node-addresses.ts';
import { NodeResources } from '../node/node-resources.ts';
import type { Agent, AgentDependencies } from './agent-dependencies.ts';
import { createContext, createMachineParts, createNodeParts, createPodParts, createRuntimeParts } from './parts.ts';

/**
 * Creates the agent, which reconciles the pods of `pods` with the runtime, and reports their status and the status of
 * the node to the API server. All of its state can be rebuilt from the runtime and the API, so a new agent continues
 * the work of the previous one.
 *
 * @throws NodeAddressError when the machine does not have the configured address of the node
 * @throws MachineError when the reservations leave nothing for pods
 */
export function createAgent(config: AgentConfig, dependencies: AgentDependencies): Agent {
  const context = createContext(config, dependencies);
  const ips = nodeIps(config.node.ip, dependencies.machine);
  const runtime = createRuntimeParts(context);
  const machine = createMachineParts(context, runtime);
  const resources = new NodeResources({
    ...{ config, machine: dependencies.machine, maxPods: context.maxPods },
    diskBytes: async () => (await machine.usage.disk(config.rootDir)).capacityBytes,
  });
  const pressure = new PressureState(config.eviction.thresholds, config.eviction.transitionMs);
  const pods = createPodParts(context, runtime, machine, { ips, resources, pressure });
  const node = createNodeParts(context, runtime, machine, pods, { ips, resources, pressure });

  /** False for pods that have certainly been removed from this node. */
  function isWanted(uid: string): boolean {
    const complete = context.pods.seenAllSources() && runtime.states.complete;
    return !complete || pods.workers.get(uid) !== undefined || runtime.states.get(uid) !== undefined;
  }

  return {
    name: 'agent',
    state: pods.queries,
    streams: pods.streams,
    async start() {
      if (context.api === undefined) await machine.podRange.learn(config.network.podCidr);
      await machine.credentials.check();
      await machine.cpus.start(isWanted);
      await machine.cgroups.start();
      await machine.volumes.start();
      await runtime.health.start();
      // The directory must exist before its file system can be measured. When it cannot be created, the status of pods
      // reports the reason.
      await machine.volumes.host.files.makeDirectory(config.rootDir, 0o750).catch(() => false);
      await resources.start();
      await node.eviction.start();
      node.presence?.start();
      pods.reports.start();
      pods.relister.start();
      pods.housekeeping.start();
      node.garbage.start();
      pods.logRotation.start();
      machine.volumeStats.start();
    },
    async stop() {
      pods.intake.stop();
      context.stopped.abort();
      pods.probes.stop();
      await Promise.all([
        node.eviction.stop(),
        machine.cpus.stop(),
        machine.cgroups.stop(),
        node.garbage.stop(),
        pods.logRotation.stop(),
        machine.volumeStats.stop(),
        pods.housekeeping.stop(),
        pods.relister.stop(),
        pods.workers.stop(),
        runtime.health.stop(),
        node.presence?.stop(),
      ]);
      await pods.reports.stop();
    },
  };
}
