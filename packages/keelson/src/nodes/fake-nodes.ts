import { missingIsUndefined } from '@keelson/client';
import { type ApiClient, formatMicroTime, formatTime } from '@keelson/core';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import { type coreV1, Lease, Node } from '@keelson/kinds';
import { keelsonVersion } from '../base/version.ts';
import { fakeNodeLabel } from '../metrics/fake-usage.ts';
import { FakePods } from './fake-pods.ts';

export interface FakeNodesOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Nodes `fake-1` to `fake-COUNT`. */
  readonly count: number;
}

const heartbeatMs = 10_000;
const leaseSeconds = 40;
const concurrentWrites = 16;
const leaseNamespace = 'kube-node-lease';
const size = { cpu: '32', memory: '256Gi', 'ephemeral-storage': '1Ti', pods: '250' };

/** The name of the fake node with this index; the first index is 0. */
export function fakeNodeName(index: number): string {
  return `fake-${index + 1}`;
}

/**
 * Nodes without machines, for tests of schedulers and controllers. One loop renews the leases of all nodes, and one
 * informer reads the pods of all nodes; an agent for each would need a dozen timers and a watch of its own. The pods
 * are reported as running, and run nothing; docs/adr/0073.
 */
export class FakeNodes {
  readonly #options: FakeNodesOptions;
  readonly #names: readonly string[];
  readonly #pods: FakePods;
  readonly #leases = new Map<string, Lease>();
  readonly #stop = new AbortController();
  #beating: Promise<void> = Promise.resolve();

  constructor(options: FakeNodesOptions) {
    this.#options = options;
    this.#names = Array.from({ length: options.count }, (_, index) => fakeNodeName(index));
    this.#pods = new FakePods({ ...options, nodeNames: this.#names });
  }

  /** Registers the nodes and runs their pods. */
  async start(): Promise<void> {
    await this.#each((name) => this.#register(name));
    await this.#pods.start();
    this.#beating = this.#beat();
  }

  /** The nodes remain registered, as those of an agent that has stopped. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#pods.stop();
    await this.#beating;
  }

  async #beat(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#each((name) =>
        this.#renew(name).catch((err: unknown) => {
          this.#leases.delete(name);
          logger.warn('renewing the node lease failed', { component: 'fake-nodes', node: name, err });
        }),
      );
      await pause(clock, heartbeatMs, signal);
    }
  }

  async #each(act: (name: string) => Promise<void>): Promise<void> {
    const queue = this.#names.values();
    const work = async () => {
      for (const name of queue) if (!this.#stop.signal.aborted) await act(name);
    };
    await Promise.all(Array.from({ length: concurrentWrites }, work));
  }

  async #register(name: string): Promise<void> {
    const nodes = this.#options.client.resource(Node);
    const known = await nodes.get(name).catch(missingIsUndefined);
    if (known === undefined) await nodes.create(newNode(name));
    const status = fakeStatus(name, formatTime(new Date(this.#options.clock.now())), known?.status?.conditions);
    await nodes.patchSubresource(name, 'status', 'strategic', { status });
  }

  async #renew(name: string): Promise<void> {
    const leases = this.#options.client.resource(Lease).namespace(leaseNamespace);
    const known = this.#leases.get(name) ?? (await leases.get(name).catch(missingIsUndefined));
    const spec = {
      holderIdentity: name,
      leaseDurationSeconds: leaseSeconds,
      renewTime: formatMicroTime(new Date(this.#options.clock.now())),
    };
    const written =
      known === undefined
        ? await leases.create({ metadata: { name }, spec })
        : await leases.update({ ...known, spec: { ...known.spec, ...spec } });
    this.#leases.set(name, written);
  }
}

function newNode(name: string): Node {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  return {
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': arch,
        [fakeNodeLabel]: 'true',
      },
    },
  };
}

function fakeStatus(name: string, now: string, before: readonly coreV1.NodeCondition[] = []): coreV1.NodeStatus {
  const condition = (type: string, status: string, reason: string, message: string): coreV1.NodeCondition => {
    const same = before.find((one) => one.type === type && one.status === status);
    const lastTransitionTime = same?.lastTransitionTime ?? now;
    return { type, status, reason, message, lastHeartbeatTime: now, lastTransitionTime };
  };
  return {
    capacity: size,
    allocatable: size,
    addresses: [{ type: 'Hostname', address: name }],
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'fake node'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'fake node'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'fake node'),
      condition('Ready', 'True', 'KubeletReady', 'fake node'),
    ],
    nodeInfo: {
      machineID: '',
      systemUUID: '',
      bootID: '',
      kernelVersion: '',
      osImage: '',
      containerRuntimeVersion: `fake://${keelsonVersion}`,
      kubeletVersion: `v${keelsonVersion}`,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    },
  };
}
