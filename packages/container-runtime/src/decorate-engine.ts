import type { CallOptions } from './call-options.ts';
import type { ContainerEngine, ContainerRuntime } from './container-runtime.ts';
import type { RuntimeStreaming } from './exec.ts';
import type { ImageService } from './image-service.ts';

/** Methods of an engine that return a promise; the event stream is not among them. */
export type RuntimeCall =
  | Exclude<keyof ContainerRuntime, 'name' | 'capabilities' | 'streaming' | 'events' | typeof Symbol.asyncDispose>
  | keyof RuntimeStreaming
  | keyof ImageService;

/** Wraps a call: executes `run` with `options`, changed or unchanged, and adds actions before and after it. */
export type Around = <T>(
  call: RuntimeCall,
  options: CallOptions,
  run: (options: CallOptions) => Promise<T>,
) => Promise<T>;

/**
 * Wraps every call of an engine. Optional methods that the engine lacks remain absent, in accordance with its
 * capabilities. Disposing of the decorated runtime disposes of the inner one.
 */
export function decorateEngine(engine: ContainerEngine, around: Around): ContainerEngine {
  return { runtime: decorateRuntime(engine.runtime, around), images: decorateImages(engine.images, around) };
}

function decorateRuntime(inner: ContainerRuntime, around: Around): ContainerRuntime {
  const { updateConfig, updateContainerResources, events } = inner;
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    streaming: decorateStreaming(inner.streaming, around),
    version: (options = {}) => around('version', options, (o) => inner.version(o)),
    status: (options = {}) => around('status', options, (o) => inner.status(o)),
    runPodSandbox: (config, options = {}) => around('runPodSandbox', options, (o) => inner.runPodSandbox(config, o)),
    stopPodSandbox: (id, options = {}) => around('stopPodSandbox', options, (o) => inner.stopPodSandbox(id, o)),
    removePodSandbox: (id, options = {}) => around('removePodSandbox', options, (o) => inner.removePodSandbox(id, o)),
    podSandboxStatus: (id, options = {}) => around('podSandboxStatus', options, (o) => inner.podSandboxStatus(id, o)),
    listPodSandboxes: (filter, options = {}) =>
      around('listPodSandboxes', options, (o) => inner.listPodSandboxes(filter, o)),
    createContainer: (sandboxId, config, options = {}) =>
      around('createContainer', options, (o) => inner.createContainer(sandboxId, config, o)),
    startContainer: (id, options = {}) => around('startContainer', options, (o) => inner.startContainer(id, o)),
    stopContainer: (id, request, options = {}) =>
      around('stopContainer', options, (o) => inner.stopContainer(id, request, o)),
    removeContainer: (id, options = {}) => around('removeContainer', options, (o) => inner.removeContainer(id, o)),
    listContainers: (filter, options = {}) => around('listContainers', options, (o) => inner.listContainers(filter, o)),
    containerStatus: (id, options = {}) => around('containerStatus', options, (o) => inner.containerStatus(id, o)),
    reopenContainerLog: (id, options = {}) =>
      around('reopenContainerLog', options, (o) => inner.reopenContainerLog(id, o)),
    execSync: (id, request, options = {}) => around('execSync', options, (o) => inner.execSync(id, request, o)),
    listContainerStats: (filter, options = {}) =>
      around('listContainerStats', options, (o) => inner.listContainerStats(filter, o)),
    ...(updateConfig && {
      updateConfig: (config: { readonly podCidr?: string }, options: CallOptions = {}) =>
        around('updateConfig', options, (o) => updateConfig.call(inner, config, o)),
    }),
    ...(updateContainerResources && {
      updateContainerResources: ((id, resources, options = {}) =>
        around('updateContainerResources', options, (o) =>
          updateContainerResources.call(inner, id, resources, o),
        )) satisfies ContainerRuntime['updateContainerResources'],
    }),
    ...(events && { events: (options?: { readonly signal?: AbortSignal }) => events.call(inner, options) }),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
}

function decorateStreaming(inner: RuntimeStreaming, around: Around): RuntimeStreaming {
  const { exec, attach, portForward } = inner;
  return {
    ...(exec && {
      exec: ((id, request, options = {}) =>
        around('exec', options, (o) => exec.call(inner, id, request, o))) satisfies RuntimeStreaming['exec'],
    }),
    ...(attach && {
      attach: ((id, request, options = {}) =>
        around('attach', options, (o) => attach.call(inner, id, request, o))) satisfies RuntimeStreaming['attach'],
    }),
    ...(portForward && {
      portForward: ((id, port, options = {}) =>
        around('portForward', options, (o) =>
          portForward.call(inner, id, port, o),
        )) satisfies RuntimeStreaming['portForward'],
    }),
  };
}

function decorateImages(inner: ImageService, around: Around): ImageService {
  return {
    listImages: (reference, options = {}) => around('listImages', options, (o) => inner.listImages(reference, o)),
    imageStatus: (reference, options = {}) => around('imageStatus', options, (o) => inner.imageStatus(reference, o)),
    pullImage: (reference, request, options = {}) =>
      around('pullImage', options, (o) => inner.pullImage(reference, request, o)),
    removeImage: (reference, options = {}) => around('removeImage', options, (o) => inner.removeImage(reference, o)),
    imageFsInfo: (options = {}) => around('imageFsInfo', options, (o) => inner.imageFsInfo(o)),
  };
}
