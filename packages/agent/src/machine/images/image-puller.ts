import { TokenBucket } from '@keelson/client';
import {
  type CallOptions,
  type Image,
  type ImageAuth,
  type ImageService,
  isRuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { Container, Pod, Secret } from '@keelson/kinds';
import type { ImageConfig } from '../../base/config/agent-config.ts';
import type { PodEvents } from '../../base/events/event-recorder.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { RestartBackoff } from '../../base/restart-backoff.ts';
import { type CloudCredentials, pullCredentials } from './pull-credentials.ts';

/** The image of a container is not available; `reason` is the reason of its waiting state. */
export class ImageProblem extends Error {
  readonly reason: 'ErrImagePull' | 'ImagePullBackOff' | 'ErrImageNeverPull' | 'InvalidImageName' | 'ImageInspectError';
  /** Time after which a retry makes sense; undefined = with the next reconciliation. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: ImageProblem['reason'], message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'ImageProblem';
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A pull was cancelled because it made no progress. */
export class PullStalled extends Error {}

/**
 * Runs a pull and cancels it when it has made no progress for `deadlineMs`; 0 = no limit. The pull must call
 * `onProgress` and observe the signal. @throws PullStalled
 */
export async function withProgressDeadline<T>(
  clock: Clock,
  deadlineMs: number,
  signal: AbortSignal,
  pull: (onProgress: () => void, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (deadlineMs <= 0) return pull(() => {}, signal);
  const stalled = new AbortController();
  let cancel = () => {};
  const rearm = () => {
    cancel();
    cancel = clock.after(deadlineMs, () => stalled.abort());
  };
  rearm();
  try {
    return await pull(rearm, AbortSignal.any([signal, stalled.signal]));
  } catch (error) {
    if (stalled.signal.aborted && !signal.aborted) {
      throw new PullStalled(`no progress for ${deadlineMs / 1000} s, the pull was cancelled`, { cause: error });
    }
    throw error;
  } finally {
    cancel();
  }
}

export interface ImagePullerOptions {
  readonly images: ImageService;
  readonly config: ImageConfig;
  /** The runtime reports the progress of pulls, so that a stalled pull can be cancelled. */
  readonly pullProgress: boolean;
  readonly clock: Clock;
  readonly events: PodEvents;
  /** Credentials of the node, which are tried after those of the pod. */
  readonly cloud: CloudCredentials;
  /** Deadline of calls other than pulls. */
  readonly callTimeoutMs: number;
}

/** Time for which the error of a pull is shown before the state changes to back-off. */
const failureShownMs = 2000;

interface PullFailure {
  readonly atMs: number;
  readonly message: string;
}

/** Makes the image of a container available, by its pull policy: see docs/reference/agent-rules.md#images. */
export class ImagePuller {
  readonly #options: ImagePullerOptions;
  readonly #backoff = new RestartBackoff();
  readonly #failures = new Map<string, PullFailure>();
  readonly #bucket: TokenBucket | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: ImagePullerOptions) {
    this.#options = options;
    const { registryQps, registryBurst } = options.config;
    this.#bucket = registryQps > 0 ? new TokenBucket(options.clock, registryQps, registryBurst) : undefined;
  }

  /** Returns the reference or id of the available image. @throws ImageProblem */
  async ensure(pod: Pod, container: Container, secrets: readonly Secret[], signal: AbortSignal): Promise<string> {
    const { events } = this.#options;
    const reference = container.image ?? '';
    if (reference.trim() === '' || /[\s\p{Cc}]/u.test(reference)) {
      throw this.#notInspected(
        pod,
        container,
        'InvalidImageName',
        `Failed to apply default image tag "${reference}": couldn't parse image reference`,
      );
    }
    const present = await this.#inspect(pod, container, reference, signal);
    const policy = container.imagePullPolicy ?? 'IfNotPresent';
    if (present !== undefined && (policy !== 'Always' || present.pinned)) {
      events.record(
        pod,
        'Normal',
        'Pulled',
        `Container image "${reference}" already present on machine`,
        container.name,
      );
      return present.id;
    }
    if (present === undefined && policy === 'Never') {
      const message = `Container image "${reference}" is not present with pull policy of Never`;
      events.record(pod, 'Warning', 'ErrImageNeverPull', message, container.name);
      throw new ImageProblem('ErrImageNeverPull', message);
    }
    return this.#pull(pod, container, reference, secrets, signal);
  }

  /** Removes the back-off state of a pod. */
  forget(uid: string): void {
    this.#backoff.forget(`${uid} `);
    for (const key of this.#failures.keys()) if (key.startsWith(`${uid} `)) this.#failures.delete(key);
  }

  async #inspect(pod: Pod, container: Container, reference: string, signal: AbortSignal): Promise<Image | undefined> {
    const call: CallOptions = { signal, timeoutMs: this.#options.callTimeoutMs };
    try {
      return await this.#options.images.imageStatus(reference, call);
    } catch (error) {
      if (signal.aborted) throw error;
      if (isRuntimeError(error, 'InvalidArgument'))
        throw this.#notInspected(pod, container, 'InvalidImageName', error.message);
      const message = `Failed to inspect image "${reference}": ${textOf(error)}`;
      throw this.#notInspected(pod, container, 'ImageInspectError', message);
    }
  }

  #notInspected(pod: Pod, container: Container, reason: ImageProblem['reason'], message: string): ImageProblem {
    this.#options.events.record(pod, 'Warning', 'InspectFailed', message, container.name);
    return new ImageProblem(reason, message);
  }

  async #pull(
    pod: Pod,
    container: Container,
    reference: string,
    secrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<string> {
    const { clock, events } = this.#options;
    const key = `${uidOf(pod)} ${reference}`;
    this.#checkBackoff(pod, container, key, reference);
    const begunMs = clock.monotonic();
    try {
      if (this.#bucket?.tryTake() === false) throw new Error('pull QPS exceeded.');
      events.record(pod, 'Normal', 'Pulling', `Pulling image "${reference}"`, container.name);
      const id = await this.#inTurn(async () => {
        const credentials = [...pullCredentials(reference, secrets), ...(await this.#options.cloud.find(reference))];
        return this.#pullWithAny(reference, credentials, signal);
      });
      const seconds = ((clock.monotonic() - begunMs) / 1000).toFixed(1);
      events.record(pod, 'Normal', 'Pulled', `Successfully pulled image "${reference}" in ${seconds}s`, container.name);
      this.#failures.delete(key);
      return id;
    } catch (error) {
      if (signal.aborted) throw error;
      const message = `Failed to pull image "${reference}": ${textOf(error)}`;
      events.record(pod, 'Warning', 'Failed', message, container.name);
      const nowMs = clock.monotonic();
      this.#failures.set(key, { atMs: nowMs, message });
      this.#backoff.next(key, nowMs);
      throw new ImageProblem('ErrImagePull', message, Math.min(failureShownMs, this.#backoff.pauseMs(key)));
    }
  }

  /** @throws ImageProblem during the back-off after a failure */
  #checkBackoff(pod: Pod, container: Container, key: string, reference: string): void {
    const failure = this.#failures.get(key);
    if (failure === undefined) return;
    const nowMs = this.#options.clock.monotonic();
    const left = this.#backoff.remaining(key, failure.atMs, nowMs);
    if (left === 0) return;
    const shown = failureShownMs - (nowMs - failure.atMs);
    if (shown > 0) throw new ImageProblem('ErrImagePull', failure.message, Math.min(shown, left));
    const message = `Back-off pulling image "${reference}"`;
    this.#options.events.record(pod, 'Normal', 'BackOff', message, container.name);
    throw new ImageProblem('ImagePullBackOff', message, left);
  }

  /** Anonymous access is tried last, because an image of this name may be private and public with different content. */
  async #pullWithAny(reference: string, credentials: readonly ImageAuth[], signal: AbortSignal): Promise<string> {
    const { images, config, pullProgress, clock } = this.#options;
    const deadlineMs = pullProgress ? config.pullProgressDeadlineMs : 0;
    let failure: unknown;
    for (const auth of [...credentials, undefined]) {
      try {
        return await withProgressDeadline(clock, deadlineMs, signal, (onProgress, within) =>
          images.pullImage(reference, { onProgress, ...(auth === undefined ? {} : { auth }) }, { signal: within }),
        );
      } catch (error) {
        // A registry that stalls does so with every credential.
        if (signal.aborted || error instanceof PullStalled) throw error;
        failure ??= error;
      }
    }
    throw failure;
  }

  /** Runs pulls one at a time in order of arrival if so configured. */
  #inTurn<T>(pull: () => Promise<T>): Promise<T> {
    if (!this.#options.config.serializePulls) return pull();
    const mine = this.#queue.then(pull);
    this.#queue = mine.catch(() => undefined);
    return mine;
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
