import type { Image, RuntimeVersion } from '@keelson/container-runtime';
import { formatTime } from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';
import type { PressureCondition } from '../base/config/eviction-signals.ts';
import type { Machine } from '../machine/host/machine.ts';

type NodeCondition = coreV1.NodeCondition;

/** A condition without its times. */
export type NodeFinding = Pick<NodeCondition, 'type' | 'status' | 'reason' | 'message'>;

export interface NodeFindings {
  readonly machine: Machine;
  readonly nodeName: string;
  readonly ips: readonly string[];
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  readonly version: RuntimeVersion | undefined;
  readonly agentVersion: string;
  readonly images: readonly Image[];
  /** Port of the agent's server; 0 = closed. */
  readonly port: number;
  /** Why the node cannot run pods; empty when it can. */
  readonly problems: readonly string[];
  /** The pressure conditions of the node. */
  readonly pressure: ReadonlySet<PressureCondition>;
  /** Conditions from other parts of the agent. */
  readonly further?: readonly NodeFinding[];
  readonly before: readonly NodeCondition[];
  readonly nowMs: number;
}

const maxImages = 50;
const maxNames = 5;

/** The status that the agent reports for its node: see docs/reference/agent-rules.md#status-of-the-node. */
export function nodeStatus(findings: NodeFindings): coreV1.NodeStatus {
  const { machine, nodeName, ips, capacity, allocatable, version, agentVersion, images, port } = findings;
  return {
    capacity: { ...capacity },
    allocatable: { ...allocatable },
    conditions: nodeConditions(findings),
    addresses: [...ips.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: nodeName }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    nodeInfo: {
      machineID: machine.machineId,
      systemUUID: machine.systemUuid,
      bootID: machine.bootId,
      kernelVersion: machine.kernelVersion,
      osImage: machine.osImage,
      containerRuntimeVersion: version === undefined ? '' : `${version.runtimeName}://${version.runtimeVersion}`,
      kubeletVersion: agentVersion,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: machine.architecture,
    },
    images: [...images]
      .sort((a, b) => b.sizeBytes - a.sizeBytes)
      .slice(0, maxImages)
      .map(({ repoDigests, repoTags, sizeBytes }) => ({
        names: [...repoDigests, ...repoTags].slice(0, maxNames),
        sizeBytes,
      })),
  };
}

/** All conditions, with `Ready` as the last one. */
export function nodeConditions({
  problems,
  pressure,
  further = [],
  before,
  nowMs,
}: Pick<NodeFindings, 'problems' | 'pressure' | 'further' | 'before' | 'nowMs'>): NodeCondition[] {
  const now = formatTime(new Date(nowMs));
  const ready = problems.length === 0;
  const findings: NodeFinding[] = [
    healthy('OutOfDisk', 'KubeletHasSufficientDisk', 'agent has sufficient disk space available'),
    pressure.has('MemoryPressure')
      ? finding('MemoryPressure', 'True', 'KubeletHasInsufficientMemory', 'agent has insufficient memory available')
      : healthy('MemoryPressure', 'KubeletHasSufficientMemory', 'agent has sufficient memory available'),
    pressure.has('DiskPressure')
      ? finding('DiskPressure', 'True', 'KubeletHasDiskPressure', 'agent has disk pressure')
      : healthy('DiskPressure', 'KubeletHasNoDiskPressure', 'agent has no disk pressure'),
    healthy('PIDPressure', 'KubeletHasSufficientPID', 'agent has sufficient PID available'),
    ...further,
    {
      type: 'Ready',
      status: ready ? 'True' : 'False',
      reason: ready ? 'KubeletReady' : 'KubeletNotReady',
      message: ready ? 'agent is posting ready status' : problems.join(', '),
    },
  ];
  return findings.map((finding) => {
    const old = before.find(({ type }) => type === finding.type);
    const since = old?.status === finding.status ? old.lastTransitionTime : undefined;
    return { ...finding, lastHeartbeatTime: now, lastTransitionTime: since ?? now };
  });
}

function healthy(type: string, reason: string, message: string): NodeFinding {
  return finding(type, 'False', reason, message);
}

function finding(type: string, status: 'True' | 'False', reason: string, message: string): NodeFinding {
  return { type, status, reason, message };
}
