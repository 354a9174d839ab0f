import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Etcd3Store } from '@keelson/storage-etcd3';
import { freePorts } from '@keelson/test-support';
import { until } from './fault-run.ts';

/** Ends a member whose test process has died in whatever way: its input ends then. */
const guard = 'read word; if [ "$word" != done ]; then kill -9 "$0"; fi';

interface Status {
  readonly leader?: string;
  readonly version?: string;
  readonly header?: { readonly member_id?: string };
}

/** One member, which can be killed and started again. */
class Member {
  readonly port: number;
  readonly peer: string;
  readonly name: string;
  #child: ChildProcess | undefined;

  constructor(name: string, port: number, peerPort: number) {
    this.name = name;
    this.port = port;
    this.peer = `http://127.0.0.1:${peerPort}`;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  start(binary: string, folder: string, members: string): void {
    const args = [
      `--name=${this.name}`,
      `--data-dir=${join(folder, this.name)}`,
      `--listen-client-urls=${this.url}`,
      `--advertise-client-urls=${this.url}`,
      `--listen-peer-urls=${this.peer}`,
      `--initial-advertise-peer-urls=${this.peer}`,
      `--initial-cluster=${members}`,
      '--logger=zap',
      '--log-level=error',
    ];
    const child = spawn(binary, args, { stdio: 'ignore' });
    const watcher = spawn('sh', ['-c', guard, String(child.pid)], { stdio: ['pipe', 'ignore', 'ignore'] });
    watcher.stdin?.on('error', () => {});
    child.once('exit', () => watcher.stdin?.end('done\n'));
    this.#child = child;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exit;
  }

  /** Undefined while it does not answer. */
  async status(): Promise<Status | undefined> {
    try {
      const request = { method: 'POST', body: '{}', signal: AbortSignal.timeout(1000) };
      const answer = await fetch(`${this.url}/v3/maintenance/status`, request);
      return answer.ok ? ((await answer.json()) as Status) : undefined;
    } catch {
      return undefined;
    }
  }
}

/** An etcd of three members on loopback. */
export class EtcdCluster {
  readonly #binary: string;
  readonly #folder: string;
  readonly #members: readonly Member[];

  private constructor(binary: string, folder: string, members: readonly Member[]) {
    this.#binary = binary;
    this.#folder = folder;
    this.#members = members;
  }

  static async start(binary: string): Promise<EtcdCluster> {
    const ports = await freePorts(6);
    const members = ['a', 'b', 'c'].map((name, i) => new Member(name, ports[2 * i] ?? 0, ports[2 * i + 1] ?? 0));
    const cluster = new EtcdCluster(binary, await mkdtemp(join(tmpdir(), 'keelson-etcd-cluster-')), members);
    for (const member of members) cluster.#run(member);
    await cluster.leader();
    return cluster;
  }

  get endpoints(): string[] {
    return this.#members.map(({ url }) => url);
  }

  /** A `--storage` URL that names every member, beginning with the n-th. */
  storage(first: number): string {
    const hosts = this.#members.map(({ port }) => `127.0.0.1:${port}`);
    return `etcd://${[...hosts.slice(first), ...hosts.slice(0, first)].join(',')}/plane/`;
  }

  async version(): Promise<string> {
    return (await this.#members[0]?.status())?.version ?? 'unknown';
  }

  async openStore(): Promise<Etcd3Store> {
    const store = new Etcd3Store({ endpoints: this.endpoints, prefix: '/plane/', compaction: 'never' });
    await store.ready();
    return store;
  }

  /** The member that leads, once there is one. */
  async leader(): Promise<Member> {
    let found: Member | undefined;
    let looking = false;
    const inspect = async () => {
      for (const member of this.#members) {
        const status = await member.status();
        if (status?.leader !== undefined && status.leader !== '0' && status.leader === status.header?.member_id)
          found = member;
      }
      looking = false;
    };
    const known = await until(() => {
      if (found === undefined && !looking) {
        looking = true;
        void inspect();
      }
      return found !== undefined;
    }, 60_000);
    if (!known || found === undefined) throw new Error('the cluster has no leader');
    return found;
  }

  /** Kills the leader; resolves with the one that was killed when there is another one. */
  async killLeader(): Promise<Member> {
    const killed = await this.leader();
    await killed.kill();
    await this.leader();
    return killed;
  }

  /** Starts a member again on its data. */
  restart(member: Member): void {
    this.#run(member);
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.kill()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #run(member: Member): void {
    member.start(this.#binary, this.#folder, this.#members.map(({ name, peer }) => `${name}=${peer}`).join(','));
  }
}
