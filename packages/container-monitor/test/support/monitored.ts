import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '@keelson/container-host';
import { EventFeed, type LinuxResources, type PodSandboxStatus, type RuntimeEvent } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { ExecutionContext } from 'ava';
import {
  type ContainerContext,
  type ContainerRecord,
  type ExitRecord,
  MonitoredContainer,
  MonitoredSandbox,
  RunFiles,
  type SandboxRecord,
  StateDirectory,
} from '../../src/index.ts';
import type { KeeperClient } from '../../src/logs/keeper-client.ts';

/** A stat line of a process id that no process can have. */
export const deadStat = statLine(0x7fff_fff0, 1);

export function statLine(pid: number, startTicks: number): string {
  return `${pid} (x) S 1 ${pid} ${pid} ${'0 '.repeat(15)}${startTicks} 0\n`;
}

/** The stat line of this process, which is running. */
export function ownStat(): string {
  return readFileSync('/proc/self/stat', 'latin1');
}

export interface Bench {
  readonly context: ContainerContext & { readonly clock: { -readonly [Member in keyof Clock]: Clock[Member] } };
  readonly state: StateDirectory;
  readonly events: RuntimeEvent[];
  /** Requests to the log keeper, such as `drop ID`. */
  readonly requests: string[];
  /** Delays of requested refreshes in milliseconds. */
  readonly delays: number[];
  now: number;
  write(id: string, kind: string, text: string): void;
}

export async function bench(t: ExecutionContext): Promise<Bench> {
  const root = mkdtempSync('/tmp/keelson-monitored-');
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const state = new StateDirectory(root, '#!/bin/sh\n');
  await state.prepare();
  const requests: string[] = [];
  const delays: number[] = [];
  const clock = { now: () => self.now, monotonic: () => performance.now(), after: () => () => {} } satisfies Clock;
  const keeper = {
    request: async (op: string, id: string) => void requests.push(`${op} ${id}`),
    close: async () => {},
  };
  const feed = new EventFeed(() => self.now);
  const events: RuntimeEvent[] = [];
  const publish = feed.publish.bind(feed);
  feed.publish = (event) => {
    events.push(event as RuntimeEvent);
    publish(event);
  };
  const self: Bench = {
    context: {
      state,
      runFiles: new RunFiles(state.run),
      keeper: keeper as unknown as KeeperClient,
      events: feed,
      clock,
      later: (_container, ms) => void delays.push(ms),
    },
    state,
    events,
    requests,
    delays,
    now: 1_000_000,
    write: (id, kind, text) => writeFileSync(join(state.run, `${id}.${kind}`), text),
  };
  return self;
}

export function containerRecord(id: string, more: Partial<ContainerRecord> = {}): ContainerRecord {
  const config = { metadata: { name: `name-${id}`, attempt: 0 }, image: 'image', mounts: [] };
  return { id, sandboxId: 'a'.repeat(24), createdAt: 1000, config, imageId: 'sha', ...more };
}

/** A container without a process: the test writes the files that a monitor would write. */
export class TestContainer extends MonitoredContainer {
  readonly calls: string[] = [];
  onLaunch: () => void = () => {};
  onKill: () => void = () => {};
  onDiscard: () => void = () => {};
  onWait: () => void = () => {};
  reason: string | undefined;
  /** Limits of the waits for a change, in milliseconds. */
  readonly waits: number[] = [];
  /** Process ids of the calls of `inspectRunning`. */
  readonly inspected: number[] = [];

  constructor(context: ContainerContext, record: ContainerRecord) {
    super(context, record);
    mkdirSync(context.state.container(record.id), { recursive: true });
  }

  protected override async launch(): Promise<void> {
    this.calls.push('launch');
    this.onLaunch();
  }
  protected override isLauncher(commandLine: readonly string[]): boolean {
    return commandLine.includes('launcher');
  }
  protected override async inspectRunning(identity: ProcessIdentity): Promise<void> {
    this.inspected.push(identity.pid);
  }
  protected override changed(withinMs: number): Promise<void> {
    this.waits.push(withinMs);
    this.onWait();
    return super.changed(withinMs);
  }
  protected override signalStop(identity: ProcessIdentity): void {
    this.calls.push(`signal ${identity.pid}`);
  }
  protected override async killAll(): Promise<void> {
    this.calls.push('kill');
    this.onKill();
  }
  protected override async settle(exit: ExitRecord): Promise<ExitRecord> {
    return this.reason === undefined ? exit : { ...exit, reason: this.reason };
  }
  protected override async applyResources(resources: LinuxResources): Promise<void> {
    this.calls.push(`apply ${JSON.stringify(resources)}`);
  }
  protected override async discard(): Promise<void> {
    this.calls.push('discard');
    this.onDiscard();
  }
}

export function sandboxRecord(id: string, createdAt = 500): SandboxRecord {
  const metadata = { uid: `u-${id}`, name: 'pod', namespace: 'ns', attempt: 0 };
  return { id, createdAt, config: { metadata } as SandboxRecord['config'] };
}

export class TestSandbox extends MonitoredSandbox<TestContainer> {
  readonly calls: string[] = [];
  onDiscard: () => void = () => {};

  override status(nodeIp: string): PodSandboxStatus {
    return { ...this.snapshot, ip: nodeIp } as unknown as PodSandboxStatus;
  }
  protected override async release(): Promise<void> {
    this.calls.push('release');
  }
  protected override async discard(): Promise<void> {
    this.calls.push('discard');
    this.onDiscard();
  }
}
