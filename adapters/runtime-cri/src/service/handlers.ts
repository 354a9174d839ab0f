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

/** Handlers of the calls for sandboxes. */
export function sandboxHandlers(runtime: ContainerRuntime): readonly CallHandler[] {
  const find = (prefix = '', signal?: AbortSignal) =>
    findId(prefix, (id) => runtime.listPodSandboxes(id === undefined ? {} : { id }, signal && { signal }));
  return [
    handler(Calls.runPodSandbox, async ({ config = {}, runtimeHandler }, signal) => {
      if (runtimeHandler) throw new RuntimeError('InvalidArgument', `unknown runtime handler "${runtimeHandler}"`);
      return { podSandboxId: await runtime.runPodSandbox(fromSandboxMessage(config), { signal }) };
    }),
    handler(Calls.stopPodSandbox, async ({ podSandboxId }, signal) => {
      await runtime.stopPodSandbox(await find(podSandboxId, signal), { signal });
      return {};
    }),
    handler(Calls.removePodSandbox, async ({ podSandboxId }, signal) => {
      await runtime.removePodSandbox(await find(podSandboxId, signal), { signal });
      return {};
    }),
    handler(Calls.podSandboxStatus, async ({ podSandboxId }, signal) => {
      const status = await runtime.podSandboxStatus(await find(podSandboxId, signal), { signal });
      return { status: toSandboxStatus(status) };
    }),
    handler(Calls.listPodSandbox, async ({ filter = {} }, signal) => {
      const { id, state, labelSelector } = filter;
      const wanted = {
        ...(state && { state: sandboxState(state.state) }),
        ...(labelSelector && { labels: labelSelector }),
      };
      const items = withIdPrefix(id, await runtime.listPodSandboxes(wanted, { signal }));
      return { items: items.map(toSandbox) };
    }),
  ];
}

/** Handlers of the calls for containers. */
export function containerHandlers(runtime: ContainerRuntime): readonly CallHandler[] {
  const find = (prefix = '', signal?: AbortSignal) =>
    findId(prefix, (id) => runtime.listContainers(id === undefined ? {} : { id }, signal && { signal }));
  const findSandbox = (prefix = '', signal?: AbortSignal) =>
    findId(prefix, (id) => runtime.listPodSandboxes(id === undefined ? {} : { id }, signal && { signal }));
  return [
    handler(Calls.createContainer, async ({ podSandboxId, config = {} }, signal) => {
      const wanted = fromContainerMessage(config);
      return {
        containerId: await runtime.createContainer(await findSandbox(podSandboxId, signal), wanted, { signal }),
      };
    }),
    handler(Calls.startContainer, async ({ containerId }, signal) => {
      await runtime.startContainer(await find(containerId, signal), { signal });
      return {};
    }),
    handler(Calls.stopContainer, async ({ containerId, timeout = 0 }, signal) => {
      const gracePeriodMs = Math.max(0, timeout) * 1000;
      await runtime.stopContainer(await find(containerId, signal), { gracePeriodMs }, { signal });
      return {};
    }),
    handler(Calls.removeContainer, async ({ containerId }, signal) => {
      await runtime.removeContainer(await find(containerId, signal), { signal });
      return {};
    }),
    handler(Calls.listContainers, async ({ filter = {} }, signal) => {
      const { id, state, podSandboxId, labelSelector } = filter;
      const wanted = {
        ...(state && { state: containerState(state.state) }),
        ...(labelSelector && { labels: labelSelector }),
      };
      const sandboxId = podSandboxId ? await findSandbox(podSandboxId, signal) : undefined;
      const containers = await runtime.listContainers({ ...wanted, ...(sandboxId && { sandboxId }) }, { signal });
      return { containers: withIdPrefix(id, containers).map(toContainer) };
    }),
    handler(Calls.containerStatus, async ({ containerId, verbose = false }, signal) => {
      const status = await runtime.containerStatus(await find(containerId, signal), { signal });
      return { status: toContainerStatus(status), ...(verbose && { info: containerInfo(status) }) };
    }),
    handler(Calls.updateContainerResources, async ({ containerId, linux = {} }, signal) => {
      if (runtime.updateContainerResources === undefined)
        throw new RuntimeError(
          'Unsupported',
          `the runtime ${runtime.name} does not support updates of container resources`,
        );
      await runtime.updateContainerResources(await find(containerId, signal), fromResources(linux), { signal });
      return {};
    }),
    handler(Calls.reopenContainerLog, async ({ containerId }, signal) => {
      await runtime.reopenContainerLog(await find(containerId, signal), { signal });
      return {};
    }),
    handler(Calls.execSync, async ({ containerId, cmd = [], timeout = 0 }, signal) => {
      const request = { command: cmd, ...(timeout > 0 && { execTimeoutMs: timeout * 1000 }) };
      return await runtime.execSync(await find(containerId, signal), request, { signal });
    }),
    handler(Calls.containerStats, async ({ containerId }, signal) => {
      const id = await find(containerId, signal);
      const [stats] = await runtime.listContainerStats({ id }, { signal });
      if (stats !== undefined) return { stats: toStats(stats) };
      // Throws `NotFound` when the container does not exist.
      const { state } = await runtime.containerStatus(id, { signal });
      throw new RuntimeError('InvalidState', `container ${id} has no statistics: it is ${state}`);
    }),
    handler(Calls.listContainerStats, async ({ filter = {} }, signal) => {
      const { id, podSandboxId, labelSelector } = filter;
      const sandboxId = podSandboxId ? await findSandbox(podSandboxId, signal) : undefined;
      const wanted = { ...(sandboxId && { sandboxId }), ...(labelSelector && { labels: labelSelector }) };
      return { stats: withIdPrefix(id, await runtime.listContainerStats(wanted, { signal })).map(toStats) };
    }),
  ];
}

interface ImageRequestFields {
  readonly image?: { readonly image?: string | undefined } | undefined;
}

function imageNameOf({ image }: ImageRequestFields): string {
  if (!image?.image) throw new RuntimeError('InvalidArgument', 'the request must contain an image');
  return image.image;
}

/** Converts a pull request. @throws `InvalidArgument` */
export function pullOf(
  request: Fields<typeof PullImageRequest>,
): [reference: string, request: Pick<PullRequest, 'auth'>] {
  const auth = request.auth && fromAuth(request.auth);
  return [imageNameOf(request), auth === undefined ? {} : { auth }];
}

/** Handlers of the calls for images. */
export function imageHandlers(images: ImageService): readonly CallHandler[] {
  return [
    handler(Calls.listImages, async ({ filter }, signal) => {
      const reference = filter?.image?.image || undefined;
      return { images: (await images.listImages(reference, { signal })).map(toImage) };
    }),
    handler(Calls.imageStatus, async (request, signal) => {
      const image = await images.imageStatus(imageNameOf(request), { signal });
      // An empty response means that the image does not exist.
      if (image === undefined) return {};
      return { image: toImage(image), ...(request.verbose && { info: imageInfo(image) }) };
    }),
    handler(Calls.pullImage, async (request, signal) => ({
      imageRef: await images.pullImage(...pullOf(request), { signal }),
    })),
    handler(Calls.removeImage, async (request, signal) => {
      await images.removeImage(imageNameOf(request), { signal });
      return {};
    }),
    handler(Calls.imageFsInfo, async (_, signal) => ({
      imageFilesystems: (await images.imageFsInfo({ signal })).map(toFilesystem),
    })),
  ];
}

/**
 * Pulls an image and yields messages with the progress and, at the end, the result. A slow client receives only the
 * latest progress.
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
  // Prevents an unhandled rejection while a message is being sent.
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

/** Version of the kubelet runtime API in `Version` requests and responses, which is constant. */
const protocolVersion = '0.1.0';

/** Handlers of the calls for the runtime itself. */
export function runtimeHandlers(runtime: ContainerRuntime): readonly CallHandler[] {
  return [
    handler(Calls.version, async (_, signal) => {
      const { runtimeName, runtimeVersion } = await runtime.version({ signal });
      return { version: protocolVersion, runtimeName, runtimeVersion, runtimeApiVersion: 'v1' };
    }),
    handler(Calls.status, async ({ verbose }, signal) => ({
      status: await runtime.status({ signal }),
      ...(verbose && { info: { [engineKey]: formatEngineInfo(runtime) } }),
    })),
    handler(Calls.updateRuntimeConfig, async ({ runtimeConfig }, signal) => {
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
 * Resolves an id or a unique prefix of an id, as containerd does for clients such as crictl. A prefix without a match
 * is returned unchanged, so that the engine reports the error.
 *
 * @throws `InvalidArgument` when several ids have this prefix
 */
export async function findId(prefix: string, list: (id?: string) => Promise<readonly Listed[]>): Promise<string> {
  if (prefix === '') throw new RuntimeError('InvalidArgument', 'an id is required');
  const [exact] = await list(prefix);
  if (exact !== undefined) return exact.id;
  const [first, second] = withIdPrefix(prefix, await list());
  if (second !== undefined) throw new RuntimeError('InvalidArgument', `several ids begin with "${prefix}"`);
  return first?.id ?? prefix;
}

/** The items whose id begins with the prefix; all items for an absent or empty prefix. */
export function withIdPrefix<T extends Listed>(prefix: string | undefined, items: readonly T[]): readonly T[] {
  return prefix ? items.filter(({ id }) => id.startsWith(prefix)) : items;
}

/** Handles one call of CRI. */
export interface CallHandler {
  readonly service: CriService;
  readonly name: string;
  /** Handles an encoded request and returns the encoded response. @throws a `RuntimeError` */
  reply(request: Buffer, signal: AbortSignal): Promise<Buffer>;
}

/** Creates a handler from a function of decoded messages. */
export function handler<Q, R>(call: CriCall<Q, R>, work: (request: Q, signal: AbortSignal) => Promise<R>): CallHandler {
  const { service, name } = call;
  const reply = async (bytes: Buffer, signal: AbortSignal) =>
    call.response.encode(await work(decodeRequest(name, call.request, bytes), signal));
  return { service, name, reply };
}

/** @throws `InvalidArgument` when the bytes are not a valid message */
export function decodeRequest<Q>(name: string, message: Message<Q>, bytes: Buffer): Q {
  try {
    return message.decode(bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RuntimeError('InvalidArgument', `${name}: cannot decode the request: ${reason}`, { cause });
  }
}

const codes: Readonly<Record<RuntimeErrorCode, status>> = {
  NotFound: status.NOT_FOUND,
  AlreadyExists: status.ALREADY_EXISTS,
  InvalidArgument: status.INVALID_ARGUMENT,
  InvalidState: status.FAILED_PRECONDITION,
  ImageNotFound: status.NOT_FOUND,
  // gRPC has no code for a failed pull or a failed start; containerd also sends UNKNOWN.
  PullFailed: status.UNKNOWN,
  StartFailed: status.UNKNOWN,
  Unsupported: status.UNIMPLEMENTED,
  DeadlineExceeded: status.DEADLINE_EXCEEDED,
  Aborted: status.CANCELLED,
  Unavailable: status.UNAVAILABLE,
  Internal: status.INTERNAL,
};

/** The gRPC status of a failed call. */
export interface GrpcError {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/** Converts an error of the engine to a gRPC status; a trailer contains the exact code for this package's client. */
export function grpcErrorOf(error: unknown): GrpcError {
  const { code, message } = toRuntimeError(error);
  const metadata = new Metadata();
  metadata.set(codeKey, code);
  return { code: codes[code], details: message, metadata };
}
