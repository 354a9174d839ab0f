import { always, filled, type Infer, optional, required, type Schema, s } from '@keelson/core';
import { StopSignalSchema } from './probes.ts';
import { ResourceRequirementsSchema } from './resources.ts';

const containerStateWaiting = s.message('k8s.io.api.core.v1.ContainerStateWaiting', 'The container does not run yet.', {
  reason: optional(1, s.string(), 'One CamelCase word for why.'),
  message: optional(2, s.string(), 'Human-readable message.'),
});
export interface ContainerStateWaiting extends Infer<typeof containerStateWaiting> {}
export const ContainerStateWaitingSchema: Schema<ContainerStateWaiting> = containerStateWaiting;

const containerStateRunning = s.message('k8s.io.api.core.v1.ContainerStateRunning', 'The container runs.', {
  startedAt: optional(1, s.time(), 'Since when.'),
});
export interface ContainerStateRunning extends Infer<typeof containerStateRunning> {}
export const ContainerStateRunningSchema: Schema<ContainerStateRunning> = containerStateRunning;

const containerStateTerminated = s.message('k8s.io.api.core.v1.ContainerStateTerminated', 'The container has ended.', {
  exitCode: always(1, s.int32(), 'Exit code.'),
  signal: optional(2, s.int32(), 'Signal that ended it.'),
  reason: optional(3, s.string(), 'One CamelCase word for why.'),
  message: optional(4, s.string(), 'Human-readable message, e.g. the termination message.'),
  startedAt: optional(5, s.time(), 'When it was started.'),
  finishedAt: optional(6, s.time(), 'When it ended.'),
  containerID: optional(7, s.string(), 'The ended container: type://id.'),
});
export interface ContainerStateTerminated extends Infer<typeof containerStateTerminated> {}
export const ContainerStateTerminatedSchema: Schema<ContainerStateTerminated> = containerStateTerminated;

const containerState = s.message(
  'k8s.io.api.core.v1.ContainerState',
  'What a container is doing; at most one field is set, none means waiting.',
  {
    waiting: optional(1, ContainerStateWaitingSchema, 'It does not run yet.'),
    running: optional(2, ContainerStateRunningSchema, 'It runs.'),
    terminated: optional(3, ContainerStateTerminatedSchema, 'It has ended.'),
  },
);
export interface ContainerState extends Infer<typeof containerState> {}
export const ContainerStateSchema: Schema<ContainerState> = containerState;

const imageVolumeStatus = s.message('k8s.io.api.core.v1.ImageVolumeStatus', 'State of an image volume.', {
  imageRef: required(1, s.string(), 'Digest of the image that is mounted.'),
});
export interface ImageVolumeStatus extends Infer<typeof imageVolumeStatus> {}
export const ImageVolumeStatusSchema: Schema<ImageVolumeStatus> = imageVolumeStatus;

const volumeStatus = s.message(
  'k8s.io.api.core.v1.VolumeStatus',
  'State of a mounted volume, by the kind of its source.',
  {
    image: optional(1, ImageVolumeStatusSchema, 'State of an image volume.'),
  },
);
export interface VolumeStatus extends Infer<typeof volumeStatus> {}
export const VolumeStatusSchema: Schema<VolumeStatus> = volumeStatus;

const volumeMountStatus = s.message('k8s.io.api.core.v1.VolumeMountStatus', 'State of a mount.', {
  name: always(1, s.string(), 'Name of the volume.'),
  mountPath: always(2, s.string(), 'Path in the container.'),
  readOnly: optional(3, s.bool(), 'Whether it is read-only.'),
  recursiveReadOnly: optional(4, s.string(), 'Disabled or Enabled; Enabled when nested mounts are read-only too.', {
    presence: true,
  }),
  volumeStatus: optional(5, VolumeStatusSchema, 'State of the volume.'),
});
export interface VolumeMountStatus extends Infer<typeof volumeMountStatus> {}
export const VolumeMountStatusSchema: Schema<VolumeMountStatus> = volumeMountStatus;

const linuxContainerUser = s.message('k8s.io.api.core.v1.LinuxContainerUser', 'User and groups of a Linux process.', {
  uid: always(1, s.int64(), 'User ID.'),
  gid: always(2, s.int64(), 'Group ID.'),
  supplementalGroups: optional(3, s.list(s.int64(), { listType: 'atomic' }), 'Further group IDs.'),
});
export interface LinuxContainerUser extends Infer<typeof linuxContainerUser> {}
export const LinuxContainerUserSchema: Schema<LinuxContainerUser> = linuxContainerUser;

const containerUser = s.message('k8s.io.api.core.v1.ContainerUser', "User of the container's first process.", {
  linux: optional(1, LinuxContainerUserSchema, 'On Linux.'),
});
export interface ContainerUser extends Infer<typeof containerUser> {}
export const ContainerUserSchema: Schema<ContainerUser> = containerUser;

const resourceHealth = s.message('k8s.io.api.core.v1.ResourceHealth', 'Health of one device.', {
  resourceID: always(1, s.string(), 'ID of the device.'),
  health: optional(2, s.string(), 'Healthy, Unhealthy or Unknown.'),
  message: optional(6, s.string(), 'Human-readable message.', { presence: true }),
});
export interface ResourceHealth extends Infer<typeof resourceHealth> {}
export const ResourceHealthSchema: Schema<ResourceHealth> = resourceHealth;

const resourceStatus = s.message('k8s.io.api.core.v1.ResourceStatus', 'Health of the devices of one resource.', {
  name: always(1, s.string(), 'Name of the resource, or claim:<claim>/<request>.'),
  resources: optional(
    2,
    s.list(ResourceHealthSchema, { listType: 'map', listMapKeys: ['resourceID'] }),
    'The devices.',
  ),
});
export interface ResourceStatus extends Infer<typeof resourceStatus> {}
export const ResourceStatusSchema: Schema<ResourceStatus> = resourceStatus;

const containerStatus = s.message('k8s.io.api.core.v1.ContainerStatus', 'Observed state of a container.', {
  name: always(1, s.string(), 'Name of the container.'),
  state: filled(2, ContainerStateSchema, 'What it is doing.'),
  lastState: filled(3, ContainerStateSchema, 'How its previous run ended.'),
  ready: always(4, s.bool(), 'Whether it has passed its readiness probe.'),
  restartCount: always(5, s.int32(), 'How often it was restarted.'),
  image: always(6, s.string(), 'Image that runs.'),
  imageID: always(7, s.string(), 'ID of the image, with its digest.'),
  containerID: optional(8, s.string(), 'The container at its runtime: type://id.'),
  started: optional(9, s.bool(), 'Whether it has passed its startup probe.', { presence: true }),
  allocatedResources: optional(10, s.map(s.quantity()), 'Resources that the node has set aside.'),
  resources: optional(11, ResourceRequirementsSchema, 'Resources that are in force.'),
  volumeMounts: optional(12, s.listByKey(VolumeMountStatusSchema, 'mountPath'), 'State of the mounts.'),
  user: optional(13, ContainerUserSchema, 'User of the first process.'),
  allocatedResourcesStatus: optional(14, s.listByKey(ResourceStatusSchema, 'name'), 'Health of the devices.'),
  stopSignal: optional(15, StopSignalSchema, 'Signal that ends it.', { presence: true }),
});
export interface ContainerStatus extends Infer<typeof containerStatus> {}
export const ContainerStatusSchema: Schema<ContainerStatus> = containerStatus;
