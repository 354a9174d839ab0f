import type { Message } from '../wire/message.ts';
import {
  Nothing,
  StatusRequest,
  StatusResponse,
  UpdateRuntimeConfigRequest,
  VersionRequest,
  VersionResponse,
} from './common.ts';
import {
  ContainerIdMessage,
  ContainerStatusRequest,
  ContainerStatusResponse,
  CreateContainerRequest,
  ExecSyncRequestMessage,
  ExecSyncResponse,
  ListContainersRequest,
  ListContainersResponse,
  StopContainerRequest,
  UpdateContainerResourcesRequest,
} from './container.ts';
import {
  ImageFsInfoResponse,
  ImageRequest,
  ImageStatusResponse,
  ListImagesRequest,
  ListImagesResponse,
  PullImageRequest,
  PullImageResponse,
} from './image.ts';
import {
  ListPodSandboxRequest,
  ListPodSandboxResponse,
  PodSandboxStatusResponse,
  RunPodSandboxRequest,
  SandboxIdMessage,
} from './sandbox.ts';
import { ContainerStatsResponse, ListContainerStatsRequest, ListContainerStatsResponse } from './stats.ts';
import { AttachRequestMessage, ExecRequestMessage, PortForwardRequestMessage, StreamUrlResponse } from './streaming.ts';

export type CriService = 'RuntimeService' | 'ImageService';

/** A call of CRI with its request and response types. */
export interface CriCall<Q, R> {
  readonly service: CriService;
  readonly name: string;
  readonly request: Message<Q>;
  readonly response: Message<R>;
}

function call<Q, R>(service: CriService, name: string, request: Message<Q>, response: Message<R>): CriCall<Q, R> {
  return { service, name, request, response };
}

export const Calls = {
  version: call('RuntimeService', 'Version', VersionRequest, VersionResponse),
  status: call('RuntimeService', 'Status', StatusRequest, StatusResponse),
  updateRuntimeConfig: call('RuntimeService', 'UpdateRuntimeConfig', UpdateRuntimeConfigRequest, Nothing),
  runPodSandbox: call('RuntimeService', 'RunPodSandbox', RunPodSandboxRequest, SandboxIdMessage),
  stopPodSandbox: call('RuntimeService', 'StopPodSandbox', SandboxIdMessage, Nothing),
  removePodSandbox: call('RuntimeService', 'RemovePodSandbox', SandboxIdMessage, Nothing),
  podSandboxStatus: call('RuntimeService', 'PodSandboxStatus', SandboxIdMessage, PodSandboxStatusResponse),
  listPodSandbox: call('RuntimeService', 'ListPodSandbox', ListPodSandboxRequest, ListPodSandboxResponse),
  createContainer: call('RuntimeService', 'CreateContainer', CreateContainerRequest, ContainerIdMessage),
  startContainer: call('RuntimeService', 'StartContainer', ContainerIdMessage, Nothing),
  stopContainer: call('RuntimeService', 'StopContainer', StopContainerRequest, Nothing),
  removeContainer: call('RuntimeService', 'RemoveContainer', ContainerIdMessage, Nothing),
  listContainers: call('RuntimeService', 'ListContainers', ListContainersRequest, ListContainersResponse),
  containerStatus: call('RuntimeService', 'ContainerStatus', ContainerStatusRequest, ContainerStatusResponse),
  updateContainerResources: call(
    'RuntimeService',
    'UpdateContainerResources',
    UpdateContainerResourcesRequest,
    Nothing,
  ),
  reopenContainerLog: call('RuntimeService', 'ReopenContainerLog', ContainerIdMessage, Nothing),
  execSync: call('RuntimeService', 'ExecSync', ExecSyncRequestMessage, ExecSyncResponse),
  exec: call('RuntimeService', 'Exec', ExecRequestMessage, StreamUrlResponse),
  attach: call('RuntimeService', 'Attach', AttachRequestMessage, StreamUrlResponse),
  portForward: call('RuntimeService', 'PortForward', PortForwardRequestMessage, StreamUrlResponse),
  containerStats: call('RuntimeService', 'ContainerStats', ContainerIdMessage, ContainerStatsResponse),
  listContainerStats: call(
    'RuntimeService',
    'ListContainerStats',
    ListContainerStatsRequest,
    ListContainerStatsResponse,
  ),
  listImages: call('ImageService', 'ListImages', ListImagesRequest, ListImagesResponse),
  imageStatus: call('ImageService', 'ImageStatus', ImageRequest, ImageStatusResponse),
  pullImage: call('ImageService', 'PullImage', PullImageRequest, PullImageResponse),
  removeImage: call('ImageService', 'RemoveImage', ImageRequest, Nothing),
  imageFsInfo: call('ImageService', 'ImageFsInfo', Nothing, ImageFsInfoResponse),
} as const;
