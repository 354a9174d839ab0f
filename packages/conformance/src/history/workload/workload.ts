import { Agent } from 'node:http';
import { Random } from '../../suite/random.ts';
import { HistoryRecorder } from '../recorder.ts';
import type { SeenObject, Selection } from '../records.ts';
import { callApi } from './api-call.ts';
import { RandomTraffic } from './random-traffic.ts';
import { RecordingClient } from './recording-client.ts';
import { RecordingWatcher } from './recording-watcher.ts';
import { workloadKinds } from './workload-kinds.ts';

/** Options of a workload. The seed determines all random choices; the order of events also depends on the servers. */
export interface WorkloadOptions {
  /** Base URLs of the servers. Clients change between them. */
  readonly servers: readonly string[];
  readonly seed: number;
  readonly recorder?: HistoryRecorder;
  /** Number of writers. Default 8. */
  readonly writers?: number;
  /** Number of readers. Default 3. */
  readonly readers?: number;
  /** Number of watchers with a selection. Two more per kind watch everything. Default 12. */
  readonly watchers?: number;
  /** Number of names per kind and namespace. Default 12. */
  readonly names?: number;
  /** Mean pause of a writer or reader between two calls, in milliseconds. Default 15. */
  readonly pauseMs?: number;
  /** Time limit of a call, in milliseconds. Default 5000. */
  readonly callTimeoutMs?: number;
  /** Number of calls after which writers and readers stop. Default: unlimited. */
  readonly maxCalls?: number;
  /** Milliseconds after the start at which writers and readers stop. Default: unlimited. */
  readonly maxMs?: number;
  /** Length of the longest value. Default 200. */
  readonly valueBytes?: number;
  readonly namespaces?: readonly string[];
}

const retryMs = 50;

/**
 * Clients that write, read and watch over HTTP and record everything: creates, conditional replaces, merge patches,
 * status writes, deletes; gets and lists at the latest, any, a minimal and an exact revision, whole and in pages;
 * watches with selectors that break, resume, begin again with the current state or at old revisions. A store must be
 * used by one workload only: objects named `w-...` of another workload would count as writes without a request.
 */
export class Workload {
  readonly recorder: HistoryRecorder;
  readonly #options: Required<Omit<WorkloadOptions, 'recorder'>>;
  readonly #random: Random;
  readonly #traffic: RandomTraffic;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1000 });
  readonly #known = new Map<string, SeenObject>();
  readonly #loops: Promise<void>[] = [];
  readonly #watchers: RecordingWatcher[] = [];
  readonly #watchLoops = new Map<RecordingWatcher, Promise<void>>();
  /** Revision at which a watch ends. */
  readonly #endAt = new Map<RecordingWatcher, number>();
  readonly #witnesses = new Map<string, RecordingWatcher[]>();
  readonly #witnessed = new Map<string, number>();
  #calls = 0;
  #acknowledged = 0;
  #running = false;
  #watching = false;
  #first = 0;
  #latest = 0;
  #gone = 0;

  constructor(options: WorkloadOptions) {
    this.recorder = options.recorder ?? new HistoryRecorder();
    this.#random = new Random(options.seed);
    this.#options = {
      writers: 8,
      readers: 3,
      watchers: 12,
      names: 12,
      pauseMs: 15,
      callTimeoutMs: 5000,
      maxCalls: Number.POSITIVE_INFINITY,
      maxMs: Number.POSITIVE_INFINITY,
      valueBytes: 200,
      namespaces: ['work-a', 'work-b'],
      ...options,
    };
    this.#traffic = new RandomTraffic(this.#random, this.#options, (key) => this.#known.get(key));
  }

  /** Greatest revision that any client has observed. */
  get latest(): number {
    return this.#latest;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Number of acknowledged writes. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /**
   * Revision up to which a watch of each kind has observed every change without a gap. History before it is not needed
   * to check the run; later deletions could otherwise remain unobserved.
   */
  get witnessed(): number {
    for (const [kind, watchers] of this.#witnesses) {
      const known = this.#witnessed.get(kind) ?? this.#first;
      const unbroken = watchers.filter(({ unbrokenFrom = Number.POSITIVE_INFINITY }) => unbrokenFrom <= known);
      this.#witnessed.set(kind, Math.max(known, ...unbroken.map(({ position = 0 }) => position)));
    }
    return Math.min(...this.#witnessed.values());
  }

  /** Number of watches that received 410. */
  get gone(): number {
    return this.#gone;
  }

  /** Creates the namespaces and starts all clients. */
  async start(): Promise<void> {
    const { writers, readers, watchers, namespaces } = this.#options;
    for (const name of namespaces) await this.#createNamespace(name);
    const first = this.#client('first');
    const empty = await first.list({ kind: 'ConfigMap' }, { at: 'latest' }, undefined);
    if (empty === undefined) throw new Error('the first list failed');
    this.#first = empty.revision;
    this.#latest = empty.revision;
    this.#running = true;
    this.#watching = true;
    for (const { kind } of workloadKinds) {
      for (const copy of ['a', 'b']) this.#watch(`witness-${kind}-${copy}`, { kind }, true);
    }
    for (let i = 0; i < watchers; i++) this.#watch(`watcher-${i}`, this.#traffic.selection(), false);
    for (let i = 0; i < writers; i++) this.#loops.push(this.#repeat(`writer-${i}`, (client) => this.#write(client)));
    for (let i = 0; i < readers; i++) this.#loops.push(this.#repeat(`reader-${i}`, (client) => this.#read(client)));
  }

  /** Stops writers and readers; running calls finish or time out. */
  async stopCalls(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops.splice(0));
  }

  /**
   * Stops all clients: waits, at most `timeoutMs`, until each watch has observed all writes, and records that no change
   * may be missing.
   */
  async finish(timeoutMs = 60_000): Promise<void> {
    await this.stopCalls();
    const deadline = this.recorder.now() + timeoutMs;
    // A write whose response was lost can still take effect. The watches of whole kinds end last, so that they have
    // observed everything that any other client has observed.
    const witnesses = [...this.#witnesses.values()].flat();
    await this.#endWatches(
      this.#watchers.filter((watcher) => !witnesses.includes(watcher)),
      deadline,
    );
    await this.#endWatches(witnesses, deadline);
    await this.stop();
  }

  /** Ends watches when they have observed all writes up to now, at the latest at the deadline. */
  async #endWatches(watchers: readonly RecordingWatcher[], deadline: number): Promise<void> {
    const client = this.#client('last');
    let last = 0;
    for (const { kind } of workloadKinds) {
      for (;;) {
        const list = await client.list({ kind }, { at: 'latest' }, undefined);
        if (list !== undefined) last = Math.max(last, list.revision);
        if (list !== undefined || this.recorder.now() > deadline) break;
        await this.#sleep(retryMs);
      }
    }
    const endAt = (revision: number) => {
      for (const watcher of watchers) {
        this.#endAt.set(watcher, revision);
        watcher.interrupt();
      }
    };
    endAt(last);
    while (watchers.some(({ position = 0 }) => position < last) && this.recorder.now() < deadline) {
      await this.#sleep(retryMs);
    }
    endAt(0);
    await Promise.all(watchers.map(async (watcher) => this.#watchLoops.get(watcher)));
    for (const { name } of watchers) this.recorder.finish(name, last);
  }

  /** Stops all clients immediately; the history then proves nothing about missing events of watches. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#watching = false;
    for (const watcher of this.#watchers) watcher.interrupt();
    await Promise.all([...this.#loops.splice(0), ...this.#watchLoops.values()]);
    this.#agent.destroy();
  }

  #client(name: string): RecordingClient {
    const { callTimeoutMs: timeoutMs } = this.#options;
    return new RecordingClient(this.#server(), { name, recorder: this.recorder, agent: this.#agent, timeoutMs });
  }

  #server(): string {
    return this.#random.pick(this.#options.servers);
  }

  async #createNamespace(name: string): Promise<void> {
    const body = { kind: 'Namespace', apiVersion: 'v1', metadata: { name } };
    const request = { agent: this.#agent, method: 'POST', path: '/api/v1/namespaces', body, timeoutMs: 10_000 };
    const answer = await callApi({ ...request, server: this.#server() });
    if (!answer.answered || (answer.status !== 201 && answer.status !== 409)) {
      throw new Error(`namespace ${name} cannot be created: ${JSON.stringify(answer)}`);
    }
  }

  async #repeat(name: string, act: (client: RecordingClient) => Promise<boolean>): Promise<void> {
    const client = this.#client(name);
    const end = this.recorder.now() + this.#options.maxMs;
    while (this.#running && this.#calls < this.#options.maxCalls && this.recorder.now() < end) {
      this.#calls += 1;
      if (this.#random.chance(0.1)) client.server = this.#server();
      const answered = await act(client);
      await this.#sleep(answered ? this.#random.next() * 2 * this.#options.pauseMs : retryMs);
    }
  }

  async #write(client: RecordingClient): Promise<boolean> {
    const op = this.#traffic.operation();
    const reply = await client.write(op);
    if (reply.is === 'ok') this.#acknowledged += 1;
    if (reply.is === 'ok' && op.do !== 'delete') this.#learn(this.recorder.objectOf(reply.object ?? -1));
    else if (op.do === 'delete' || (reply.is === 'refused' && reply.code === 404)) this.#known.delete(op.key);
    else if (reply.is === 'refused' && reply.code === 409) {
      const current = await client.get(op.key, { at: 'latest' });
      if (current === 'missing') this.#known.delete(op.key);
      else if (current !== undefined) this.#learn(current);
    }
    return reply.is === 'ok' || (reply.is === 'refused' && reply.code !== 0);
  }

  #learn(object: SeenObject | undefined): void {
    if (object === undefined) return;
    this.#latest = Math.max(this.#latest, object.revision);
    const known = this.#known.get(object.key);
    if (known === undefined || known.revision < object.revision) this.#known.set(object.key, object);
  }

  async #read(client: RecordingClient): Promise<boolean> {
    const random = this.#random;
    const at = this.#traffic.readAt(this.#first, this.#latest);
    if (at.at !== 'exact' && random.chance(0.4)) {
      const object = await client.get(this.#traffic.key(), at);
      if (object !== undefined && object !== 'missing') this.#latest = Math.max(this.#latest, object.revision);
      return object !== undefined;
    }
    const selection = random.chance(0.5) ? { kind: random.pick(workloadKinds).kind } : this.#traffic.selection();
    // A list "not older than" a revision has no limit: with a limit, servers treat a resourceVersion without
    // resourceVersionMatch as an exact revision.
    const limit = at.at !== 'notOlderThan' && random.chance(0.5) ? 1 + random.below(8) : undefined;
    const list = await client.list(selection, at, limit, async () => {
      await this.#sleep(random.next() * this.#options.pauseMs);
      if (random.chance(0.3)) client.server = this.#server();
    });
    if (list !== undefined) this.#latest = Math.max(this.#latest, list.revision);
    return list !== undefined;
  }

  #watch(name: string, selection: Selection, witness: boolean): void {
    const watcher = new RecordingWatcher(this.#first, { name, selection, recorder: this.recorder, agent: this.#agent });
    this.#watchers.push(watcher);
    if (witness) this.#witnesses.set(selection.kind, [...(this.#witnesses.get(selection.kind) ?? []), watcher]);
    this.#watchLoops.set(watcher, this.#follow(watcher, witness));
  }

  async #follow(watcher: RecordingWatcher, witness: boolean): Promise<void> {
    const random = this.#random;
    while (this.#watching && (watcher.position ?? 0) < (this.#endAt.get(watcher) ?? Number.POSITIVE_INFINITY)) {
      const last = this.#endAt.has(watcher);
      const plan = { server: this.#server(), timeoutSeconds: last ? 1 : 1 + random.below(5) };
      const dice = witness || last ? 1 : random.next();
      let why: string;
      if (dice < 0.1) why = await watcher.session({ ...plan, from: { state: random.chance(0.5) ? 'fresh' : 'any' } });
      else if (dice < 0.2) why = await watcher.session({ ...plan, from: { state: 'fresh' }, sendInitialEvents: true });
      else if (dice < 0.35) {
        const after = this.#first + random.below(Math.max(1, this.#latest - this.#first));
        why = await watcher.session({ ...plan, from: { after } });
      } else why = await watcher.session(plan);
      if (why === 'gone') {
        this.#gone += 1;
        watcher.position = undefined;
      }
      if (why !== 'ended') await this.#sleep(2 * retryMs);
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }
}
