import {
  type ContainerId,
  EventFeed,
  type Image,
  normalizeImageReference,
  type PodSandbox,
  RuntimeError,
  type RuntimeErrorCode,
  type SandboxId,
} from '@keelson/container-runtime';
import { type Clock, systemClock } from '@keelson/core/runtime';
import type { FakePull, FakeScript } from './behaviour.ts';
import type { FakeContainer } from './fake-container.ts';
import type { FakeSandbox } from './fake-sandbox.ts';

export interface FakeWorldOptions {
  readonly clock?: Clock;
  readonly script?: FakeScript;
  /** Determines the result of a pull. Default: every pull succeeds at once. */
  readonly pull?: (reference: string) => FakePull;
  /** References of images that exist without a pull. */
  readonly images?: readonly string[];
  /** Delay of every call in milliseconds. */
  readonly latencyMs?: number;
  /** Address of a pod, by the number of its sandbox. Sandboxes and containers are numbered together, from 1. */
  readonly podIp?: (index: number) => string;
}

/** A failure that a test has injected for later calls. */
interface OrderedFailure {
  readonly error: RuntimeError;
  times: number;
}

/**
 * The simulated machine of fake runtimes. Like the containers of a real machine, it continues to exist when a runtime
 * is closed. Tests change it directly.
 */
export class FakeWorld {
  readonly clock: Clock;
  readonly events: EventFeed;
  readonly sandboxes = new Map<SandboxId, FakeSandbox>();
  readonly containers = new Map<ContainerId, FakeContainer>();
  readonly images = new Map<string, Image>();
  /** Number of calls by method, over all runtimes of this world. */
  readonly calls = new Map<string, number>();
  readonly latencyMs: number;
  readonly pull: (reference: string) => FakePull;
  readonly podIp: (index: number) => string;
  script: FakeScript;
  /** The condition `RuntimeReady` that `status` reports. When it is false, the agent reports the node as not ready. */
  runtimeReady = true;
  networkReady = true;
  /** While this is true, every call fails with `Unavailable`, and containers continue to run. */
  unreachable = false;
  readonly #byPod = new Map<string, Set<FakeSandbox>>();
  readonly #failures = new Map<string, OrderedFailure>();
  readonly #hung = new Set<string>();
  #ids = 0;

  constructor(options: FakeWorldOptions = {}) {
    this.clock = options.clock ?? systemClock;
    this.events = new EventFeed(() => this.clock.now());
    this.script = options.script ?? (() => ({}));
    this.pull = options.pull ?? (() => ({}));
    this.latencyMs = options.latencyMs ?? 0;
    this.podIp = options.podIp ?? ((index) => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`);
    for (const reference of options.images ?? []) this.addImage(normalizeImageReference(reference), {});
  }

  nextIndex(): number {
    this.#ids += 1;
    return this.#ids;
  }

  /** Sandboxes of one pod. */
  *sandboxesOf(uid: string): Iterable<PodSandbox> {
    for (const sandbox of this.#byPod.get(uid) ?? []) yield sandbox.snapshot;
  }

  /** Adds a sandbox; called by the sandbox itself. */
  add(sandbox: FakeSandbox): void {
    const { uid } = sandbox.config.metadata;
    this.sandboxes.set(sandbox.id, sandbox);
    const others = this.#byPod.get(uid);
    if (others === undefined) this.#byPod.set(uid, new Set([sandbox]));
    else others.add(sandbox);
  }

  delete(sandbox: FakeSandbox): boolean {
    const { uid } = sandbox.config.metadata;
    const others = this.#byPod.get(uid);
    others?.delete(sandbox);
    if (others?.size === 0) this.#byPod.delete(uid);
    return this.sandboxes.delete(sandbox.id);
  }

  /** The image of a reference or id. @throws `InvalidArgument` for a malformed reference */
  findImage(reference: string): Image | undefined {
    return this.images.get(
      reference.startsWith('fake:') ? reference.slice('fake:'.length) : normalizeImageReference(reference),
    );
  }

  addImage(reference: string, pull: FakePull): Image {
    const image: Image = {
      id: `fake:${reference}`,
      repoTags: [reference],
      repoDigests: [],
      sizeBytes: pull.sizeBytes ?? 1_000_000,
      pinned: false,
      config: {},
      ...(pull.uid !== undefined && { uid: pull.uid }),
    };
    this.images.set(reference, image);
    return image;
  }

  /** Makes the next `times` calls of a method of the runtime fail. */
  failNext(call: string, code: RuntimeErrorCode, message = 'injected by the test', times = 1): void {
    this.#failures.set(call, { error: new RuntimeError(code, message), times });
  }

  /** Makes further calls of a method of the runtime never settle; calls after `resume` settle again. */
  hang(call: string): void {
    this.#hung.add(call);
  }

  resume(call: string): void {
    this.#hung.delete(call);
  }

  /** Makes the process of a container exit now, without a stop. @throws `NotFound`, `InvalidState` */
  exit(id: ContainerId, exitCode: number, reason?: string): void {
    const container = this.containers.get(id);
    if (container === undefined) throw new RuntimeError('NotFound', `no container "${id}"`);
    container.exit(exitCode, reason);
  }

  /** Ends the sandbox and its containers now. @throws `NotFound` */
  loseSandbox(id: SandboxId): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) throw new RuntimeError('NotFound', `no sandbox "${id}"`);
    sandbox.stop();
    for (const container of sandbox.containers) if (container.state === 'running') container.exit(137);
  }

  /** Ends all event streams with an error; consumers then open new streams and list again. */
  breakEvents(): void {
    this.events.fail('the event stream broke');
  }

  /** Executed before every call: counts it and applies latency and injected failures. */
  async admit(call: string): Promise<void> {
    this.calls.set(call, (this.calls.get(call) ?? 0) + 1);
    if (this.latencyMs > 0) await this.wait(this.latencyMs);
    if (this.#hung.has(call)) await new Promise<never>(() => {});
    if (this.unreachable) throw new RuntimeError('Unavailable', 'the runtime does not answer');
    const failure = this.#failures.get(call);
    if (failure === undefined) return;
    failure.times -= 1;
    if (failure.times <= 0) this.#failures.delete(call);
    throw failure.error;
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms, resolve));
  }
}
