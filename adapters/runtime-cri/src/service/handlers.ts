import { Metadata, status } from '@grpc/grpc-js';
import {
  type ContainerRuntime,
  type ImageService,
  type PullProgress,
  type PullRequest,
  RuntimeError,
  type RuntimeErrorCode,
  toRuntimeError,
} from '@keelson/container-runtime';
import { Calls, type CriCall, type CriService } from '../api/calls.ts';
import { PullImageRequest, PullImageStep } from '../api/image.ts';
import { codeKey } from '../connection/cri-connection.ts';
import { containerState, sandboxState } from '../convert/from-cri.ts';
import { fromResources } from '../convert/to-cri.ts';
import { engineKey, formatEngineInfo } from '../engine-info.ts';
import type { Fields, Message } from '../wire/message.ts';
import { fromContainerMessage, fromSandboxMessage } from './from-cri.ts';
import {
  containerInfo,
  fromAuth,
  imageInfo,
  toContainer,
  toContainerStatus,
  toFilesystem,
  toImage,
  toSandbox,
  toSandboxStatus,
  toStats,
} from './to-cri.ts';

/** The calls about sandboxes. */
export function sandboxAnswers(runtime: ContainerRuntime): readonly Answer[] {
  const find = (word = '', signal?: AbortSignal) =>
    findId(word, (id) => runtime.listPodSandboxes(id === undefined ? {} : { id }, signal && { signal }));
  return [
    answer(Calls.runPodSandbox, async ({ config = {}, runtimeHandler }, signal) => {
      if (runtimeHandler) throw new RuntimeError('InvalidArgument', `there is no runtime handler "${runtimeHandler}"`);
      return { podSandboxId: await runtime.runPodSandbox(fromSandboxMessage(config), { signal }) };
    }),
    answer(Calls.stopPodSandbox, async ({ podSandboxId }, signal) => {
      await runtime.stopPodSandbox(await find(podSandboxId, signal), { signal });
      return {};
    }),
    answer(Calls.removePodSandbox, async ({ podSandboxId }, signal) => {
      await runtime.removePodSandbox(await find(podSandboxId, signal), { signal });
      return {};
    }),
    answer(Calls.podSandboxStatus, async ({ podSandboxId }, signal) => {
      const status = await runtime.podSandboxStatus(await find(podSandboxId, signal), { signal });
      return { status: toSandboxStatus(status) };
    }),
    answer(Calls.listPodSandbox, async ({ filter = {} }, signal) => {
      const { id, state, labelSelector } = filter;
      const wanted = {
        ...(state && { state: sandboxState(state.state) }),
        ...(labelSelector && { labels: labelSelector }),
      };
      const items = startingWith(id, await runtime.listPodSandboxes(wanted, { signal }));
      return { items: items.map(toSandbox) };
    }),
  ];
}

/** The calls about containers. */
export function containerAnswers(runtime: ContainerRuntime): readonly Answer[] {
  const find = (word = '', signal?: AbortSignal) =>
    findId(word, (id) => runtime.listContainers(id === undefined ? {} : { id }, signal && { signal }));
  const findSandbox = (word = '', signal?: AbortSignal) =>
    findId(word, (id) => runtime.listPodSandboxes(id === undefined ? {} : { id }, signal && { signal }));
  return [
    answer(Calls.createContainer, async ({ podSandboxId, config = {} }, signal) => {
      const wanted = fromContainerMessage(config);
      return {
        containerId: await runtime.createContainer(await findSandbox(podSandboxId, signal), wanted, { signal }),
      };
    }),
    answer(Calls.startContainer, async ({ containerId }, signal) => {
      await runtime.startContainer(await find(containerId, signal), { signal });
      return {};
    }),
    answer(Calls.stopContainer, async ({ containerId, timeout = 0 }, signal) => {
      const gracePeriodMs = Math.max(0, timeout) * 1000;
      await runtime.stopContainer(await find(containerId, signal), { gracePeriodMs }, { signal });
      return {};
    }),
    answer(Calls.removeContainer, async ({ containerId }, signal) => {
      await runtime.removeContainer(await find(containerId, signal), { signal });
      return {};
    }),
    answer(Calls.listContainers, async ({ filter = {} }, signal) => {
      const { id, state, podSandboxId, labelSelector } = filter;
      const wanted = {
        ...(state && { state: containerState(state.state) }),
        ...(labelSelector && { labels: labelSelector }),
      };
      const sandboxId = podSandboxId ? await findSandbox(podSandboxId, signal) : undefined;
      const containers = await runtime.listContainers({ ...wanted, ...(sandboxId && { sandboxId }) }, { signal });
      return { containers: startingWith(id, containers).map(toContainer) };
    }),
    answer(Calls.containerStatus, async ({ containerId, verbose = false }, signal) => {
      const status = await runtime.containerStatus(await find(containerId, signal), { signal });
      return { status: toContainerStatus(status), ...(verbose && { info: containerInfo(status) }) };
    }),
    answer(Calls.updateContainerResources, async ({ containerId, linux = {} }, signal) => {
      if (runtime.updateContainerResources === undefined)
        throw new RuntimeError('Unsupported', `the runtime ${runtime.name} cannot change the resources of a container`);
      await runtime.updateContainerResources(await find(containerId, signal), fromResources(linux), { signal });
      return {};
    }),
    answer(Calls.reopenContainerLog, async ({ containerId }, signal) => {
      await runtime.reopenContainerLog(await find(containerId, signal), { signal });
      return {};
    }),
    answer(Calls.execSync, async ({ containerId, cmd = [], timeout = 0 }, signal) => {
      const request = { command: cmd, ...(timeout > 0 && { execTimeoutMs: timeout * 1000 }) };
      return await runtime.execSync(await find(containerId, signal), request, { signal });
    }),
    answer(Calls.containerStats, async ({ containerId }, signal) => {
      const id = await find(containerId, signal);
      const [stats] = await runtime.listContainerStats({ id }, { signal });
      if (stats !== undefined) return { stats: toStats(stats) };
      // Says so if there is no such container.
      const { state } = await runtime.containerStatus(id, { signal });
      throw new RuntimeError('InvalidState', `container ${id} uses nothing: it is ${state}`);
    }),
    answer(Calls.listContainerStats, async ({ filter = {} }, signal) => {
      const { id, podSandboxId, labelSelector } = filter;
      const sandboxId = podSandboxId ? await findSandbox(podSandboxId, signal) : undefined;
      const wanted = { ...(sandboxId && { sandboxId }), ...(labelSelector && { labels: labelSelector }) };
      return { stats: startingWith(id, await runtime.listContainerStats(wanted, { signal })).map(toStats) };
    }),
  ];
}

interface NamesImage {
  readonly image?: { readonly image?: string | undefined } | undefined;
}

function named({ image }: NamesImage): string {
  if (!image?.image) throw new RuntimeError('InvalidArgument', 'an image must be named');
  return image.image;
}

/** What a request to pull asks for. @throws `InvalidArgument` */
export function pullOf(
  request: Fields<typeof PullImageRequest>,
): [reference: string, request: Pick<PullRequest, 'auth'>] {
  const auth = request.auth && fromAuth(request.auth);
  return [named(request), auth === undefined ? {} : { auth }];
}

/** The calls about images. */
export function imageAnswers(images: ImageService): readonly Answer[] {
  return [
    answer(Calls.listImages, async ({ filter }, signal) => {
      const reference = filter?.image?.image || undefined;
      return { images: (await images.listImages(reference, { signal })).map(toImage) };
    }),
    answer(Calls.imageStatus, async (request, signal) => {
      const image = await images.imageStatus(named(request), { signal });
      // That it is not there is an answer, too.
      if (image === undefined) return {};
      return { image: toImage(image), ...(request.verbose && { info: imageInfo(image) }) };
    }),
    answer(Calls.pullImage, async (request, signal) => ({
      imageRef: await images.pullImage(...pullOf(request), { signal }),
    })),
    answer(Calls.removeImage, async (request, signal) => {
      await images.removeImage(named(request), { signal });
      return {};
    }),
    answer(Calls.imageFsInfo, async (_, signal) => ({
      imageFilesystems: (await images.imageFsInfo({ signal })).map(toFilesystem),
    })),
  ];
}

/**
 * A pull, step by step. Whoever reads slowly misses steps that later ones have overtaken, and never the last.
 *
 * @throws a `RuntimeError`
 */
export async function* pullSteps(images: ImageService, bytes: Buffer, signal: AbortSignal): AsyncIterable<Buffer> {
  const [reference, auth] = pullOf(decodeRequest('PullImage', PullImageRequest, bytes));
  let latest: PullProgress | undefined;
  let ended = false;
  let wake = () => {};
  const onProgress = (progress: PullProgress) => {
    latest = progress;
    wake();
  };
  const pulling = images.pullImage(reference, { ...auth, onProgress }, { signal }).finally(() => {
    ended = true;
    wake();
  });
  // It may fail while a step is on its way.
  pulling.catch(() => {});
  while (!ended || latest !== undefined) {
    if (latest === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    const { receivedBytes, totalBytes } = latest;
    latest = undefined;
    const total = totalBytes === undefined ? {} : { totalBytes: BigInt(totalBytes) };
    yield PullImageStep.encode({ receivedBytes: BigInt(receivedBytes), ...total });
  }
  yield PullImageStep.encode({ imageRef: await pulling });
}

/** Version of the protocol that clients give and get in the call of that name; it has always been this. */
const protocolVersion = '0.1.0';

/** The calls about the runtime as a whole. */
export function runtimeAnswers(runtime: ContainerRuntime): readonly Answer[] {
  return [
    answer(Calls.version, async (_, signal) => {
      const { runtimeName, runtimeVersion } = await runtime.version({ signal });
      return { version: protocolVersion, runtimeName, runtimeVersion, runtimeApiVersion: 'v1' };
    }),
    answer(Calls.status, async ({ verbose }, signal) => ({
      status: await runtime.status({ signal }),
      ...(verbose && { info: { [engineKey]: formatEngineInfo(runtime) } }),
    })),
    answer(Calls.updateRuntimeConfig, async ({ runtimeConfig }, signal) => {
      const podCidr = runtimeConfig?.networkConfig?.podCidr;
      await runtime.updateConfig?.(podCidr ? { podCidr } : {}, { signal });
      return {};
    }),
  ];
}

interface Listed {
  readonly id: string;
}

/**
 * The id that a caller means. Tools show the beginnings of ids and let people type them, as daemons do. What names
 * nothing stays as it is: the engine says what is to be said of it.
 *
 * @throws `InvalidArgument` when several begin so
 */
export async function findId(word: string, list: (id?: string) => Promise<readonly Listed[]>): Promise<string> {
  if (word === '') throw new RuntimeError('InvalidArgument', 'an id is needed');
  const [exact] = await list(word);
  if (exact !== undefined) return exact.id;
  const [first, second] = startingWith(word, await list());
  if (second !== undefined) throw new RuntimeError('InvalidArgument', `several ids begin with "${word}"`);
  return first?.id ?? word;
}

/** Those whose id is this, or begins so; all of them for no word. */
export function startingWith<T extends Listed>(word: string | undefined, items: readonly T[]): readonly T[] {
  return word ? items.filter(({ id }) => id.startsWith(word)) : items;
}

/** What the service does when one call of CRI comes in. */
export interface Answer {
  readonly service: CriService;
  readonly name: string;
  /** Of bytes to bytes, as they are on the wire. @throws a `RuntimeError` */
  reply(request: Buffer, signal: AbortSignal): Promise<Buffer>;
}

/** Answers a call by a function of its messages. */
export function answer<Q, R>(call: CriCall<Q, R>, work: (request: Q, signal: AbortSignal) => Promise<R>): Answer {
  const { service, name } = call;
  const reply = async (bytes: Buffer, signal: AbortSignal) =>
    call.response.encode(await work(decodeRequest(name, call.request, bytes), signal));
  return { service, name, reply };
}

/** @throws `InvalidArgument` for bytes that are no such message */
export function decodeRequest<Q>(name: string, message: Message<Q>, bytes: Buffer): Q {
  try {
    return message.decode(bytes);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RuntimeError('InvalidArgument', `${name}: the request cannot be read: ${why}`, { cause });
  }
}

const codes: Readonly<Record<RuntimeErrorCode, status>> = {
  NotFound: status.NOT_FOUND,
  AlreadyExists: status.ALREADY_EXISTS,
  InvalidArgument: status.INVALID_ARGUMENT,
  InvalidState: status.FAILED_PRECONDITION,
  ImageNotFound: status.NOT_FOUND,
  // Daemons have no code for these two either.
  PullFailed: status.UNKNOWN,
  StartFailed: status.UNKNOWN,
  Unsupported: status.UNIMPLEMENTED,
  DeadlineExceeded: status.DEADLINE_EXCEEDED,
  Aborted: status.CANCELLED,
  Unavailable: status.UNAVAILABLE,
  Internal: status.INTERNAL,
};

/** How a call of the service ends that the engine refused. */
export interface Refusal {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/**
 * The one place where a failure of the engine becomes a status of gRPC; the exact code travels along for clients that
 * know it.
 */
export function refusalOf(error: unknown): Refusal {
  const { code, message } = toRuntimeError(error);
  const metadata = new Metadata();
  metadata.set(codeKey, code);
  return { code: codes[code], details: message, metadata };
}
