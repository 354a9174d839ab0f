import { always, filled, type Infer, inline, optional, type Schema, s } from '@keelson/core';
import { LocalObjectReferenceSchema } from './references.ts';

const configMapKeySelector = s.message(
  'k8s.io.api.core.v1.ConfigMapKeySelector',
  'One entry of a ConfigMap.',
  {
    localObjectReference: inline(1, LocalObjectReferenceSchema),
    key: always(2, s.string(), 'Key of the entry.'),
    optional: optional(3, s.bool(), 'True lets the container start although the ConfigMap or the key is missing.', {
      presence: true,
    }),
  },
  { mapType: 'atomic' },
);
export interface ConfigMapKeySelector extends Infer<typeof configMapKeySelector> {}
export const ConfigMapKeySelectorSchema: Schema<ConfigMapKeySelector> = configMapKeySelector;

const secretKeySelector = s.message(
  'k8s.io.api.core.v1.SecretKeySelector',
  'One entry of a Secret.',
  {
    localObjectReference: inline(1, LocalObjectReferenceSchema),
    key: always(2, s.string(), 'Key of the entry.'),
    optional: optional(3, s.bool(), 'True lets the container start although the Secret or the key is missing.', {
      presence: true,
    }),
  },
  { mapType: 'atomic' },
);
export interface SecretKeySelector extends Infer<typeof secretKeySelector> {}
export const SecretKeySelectorSchema: Schema<SecretKeySelector> = secretKeySelector;

const fileKeySelector = s.message(
  'k8s.io.api.core.v1.FileKeySelector',
  'One variable from a file on a volume.',
  {
    volumeName: always(1, s.string(), 'Volume with the file.'),
    path: always(2, s.string(), 'Path of the file, relative to the root of the volume, without `..`.'),
    key: always(3, s.string(), 'Name of the variable in the file.'),
    optional: optional(4, s.bool(), 'True lets the container start although the file or the key is missing.', {
      presence: true,
      default: false,
    }),
  },
  { mapType: 'atomic' },
);
export interface FileKeySelector extends Infer<typeof fileKeySelector> {}
export const FileKeySelectorSchema: Schema<FileKeySelector> = fileKeySelector;

const objectFieldSelector = s.message(
  'k8s.io.api.core.v1.ObjectFieldSelector',
  'One field of the pod itself.',
  {
    apiVersion: optional(1, s.string(), 'Version of the Pod schema in which fieldPath is written.', { default: 'v1' }),
    fieldPath: always(2, s.string(), "Path of the field, e.g. metadata.name or metadata.labels['app']."),
  },
  { mapType: 'atomic' },
);
export interface ObjectFieldSelector extends Infer<typeof objectFieldSelector> {}
export const ObjectFieldSelectorSchema: Schema<ObjectFieldSelector> = objectFieldSelector;

const resourceFieldSelector = s.message(
  'k8s.io.api.core.v1.ResourceFieldSelector',
  'One resource request or limit of a container.',
  {
    containerName: optional(
      1,
      s.string(),
      'Name of the container; required in volumes, by default the container itself in environment variables.',
    ),
    resource: always(2, s.string(), 'Which amount, e.g. limits.cpu or requests.memory.'),
    divisor: filled(3, s.quantity(), 'Unit in which the amount is written; 0 stands for 1.'),
  },
  { mapType: 'atomic' },
);
export interface ResourceFieldSelector extends Infer<typeof resourceFieldSelector> {}
export const ResourceFieldSelectorSchema: Schema<ResourceFieldSelector> = resourceFieldSelector;

const keyToPath = s.message(
  'k8s.io.api.core.v1.KeyToPath',
  'Puts one entry of a ConfigMap or Secret at a path of its own.',
  {
    key: always(1, s.string(), 'Key of the entry.'),
    path: always(2, s.string(), 'File to write, relative to the mount, without `..`.'),
    mode: optional(
      3,
      s.int32(),
      'Permission bits of this file, 0 to 511 (octal 0777); by default those of the volume.',
      {
        presence: true,
      },
    ),
  },
);
export interface KeyToPath extends Infer<typeof keyToPath> {}
export const KeyToPathSchema: Schema<KeyToPath> = keyToPath;
