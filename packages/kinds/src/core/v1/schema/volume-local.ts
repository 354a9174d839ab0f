import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const hostPathVolumeSource = s.message('k8s.io.api.core.v1.HostPathVolumeSource', 'A file or directory of the node.', {
  path: always(1, s.string(), 'Path on the node.'),
  type: optional(
    2,
    s.string({
      values: ['', 'BlockDevice', 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket'],
    }),
    'Required type of the path; missing ones are created for types ending in OrCreate: empty (no check), DirectoryOrCreate, Directory, FileOrCreate, File, Socket, CharDevice or BlockDevice.',
    { presence: true, default: '' },
  ),
});
export interface HostPathVolumeSource extends Infer<typeof hostPathVolumeSource> {}
export const HostPathVolumeSourceSchema: Schema<HostPathVolumeSource> = hostPathVolumeSource;

const emptyDirVolumeSource = s.message(
  'k8s.io.api.core.v1.EmptyDirVolumeSource',
  'An empty directory that lives as long as the pod.',
  {
    medium: optional(1, s.string(), "Empty for the node's disk, Memory for a RAM file system, or HugePages-<size>."),
    sizeLimit: optional(2, s.quantity(), 'Most that may be stored in it.'),
  },
);
export interface EmptyDirVolumeSource extends Infer<typeof emptyDirVolumeSource> {}
export const EmptyDirVolumeSourceSchema: Schema<EmptyDirVolumeSource> = emptyDirVolumeSource;

const gitRepoVolumeSource = s.message(
  'k8s.io.api.core.v1.GitRepoVolumeSource',
  'A clone of a git repository (deprecated).',
  {
    repository: always(1, s.string(), 'URL of the repository.'),
    revision: optional(2, s.string(), 'Commit to check out.'),
    directory: optional(3, s.string(), 'Directory to clone into, without `..`; `.` for the volume itself.'),
  },
);
export interface GitRepoVolumeSource extends Infer<typeof gitRepoVolumeSource> {}
export const GitRepoVolumeSourceSchema: Schema<GitRepoVolumeSource> = gitRepoVolumeSource;

const imageVolumeSource = s.message(
  'k8s.io.api.core.v1.ImageVolumeSource',
  'Content of a container image or artifact, read-only.',
  {
    reference: optional(1, s.string(), 'Name of the image.'),
    pullPolicy: optional(
      2,
      s.string({ values: ['Always', 'IfNotPresent', 'Never'] }),
      'Always, Never or IfNotPresent.',
    ),
  },
);
export interface ImageVolumeSource extends Infer<typeof imageVolumeSource> {}
export const ImageVolumeSourceSchema: Schema<ImageVolumeSource> = imageVolumeSource;
