import { MonitoredSandbox } from '@keelson/container-monitor';
import type { PodSandboxStatus } from '@keelson/container-runtime';
import type { ProcessContainer } from './process-container.ts';

/** A pod: two files and its containers. It uses the network of the machine. */
export class ProcessSandbox extends MonitoredSandbox<ProcessContainer> {
  status(nodeIp: string): PodSandboxStatus {
    return {
      ...this.snapshot,
      ips: this.ready ? [nodeIp] : [],
      namespaces: { network: 'node', pid: 'node', ipc: 'node' },
    };
  }
}
