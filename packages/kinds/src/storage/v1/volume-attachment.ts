import {
  type Column,
  defineKind,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkVolumeSpec } from '../../core/v1/persistent-volume/check-volume-spec.ts';
import { checkText, checkUnchanged, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import { checkDriverName } from '../../validation/volumes.ts';
import {
  VolumeAttachmentSchema,
  type VolumeAttachmentSource,
  type VolumeAttachment as VolumeAttachmentType,
  type VolumeError,
} from './schema.ts';

const maxMetadataBytes = 256 * 1024;
const maxMessageBytes = 1024;

const columns: readonly Column<VolumeAttachmentType>[] = [
  nameColumn(),
  {
    ...column('Attacher', 'string', 'Driver that attaches.', ({ spec }: VolumeAttachmentType) => spec.attacher ?? ''),
    format: 'name',
  },
  column('PV', 'string', 'The volume.', ({ spec }) => spec.source?.persistentVolumeName ?? ''),
  column('Node', 'string', 'The node.', ({ spec }) => spec.nodeName ?? ''),
  column('Attached', 'boolean', 'Whether it is attached.', ({ status }) => status?.attached ?? false),
  ageColumn,
];

/** The intent to attach a volume to a node. */
export const VolumeAttachment: KindDefinition<VolumeAttachmentType> = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'VolumeAttachment',
  scope: 'Cluster',
  schema: VolumeAttachmentSchema,
  strategy: {
    generation: 'none',
    allowUnconditionalUpdate: false,
    deleteReturnsObject: true,
    validate: validateAttachment,
    validateCreate({ spec }) {
      const errors = newErrors();
      checkDriverName(spec.attacher, 'spec.attacher', errors);
      const name = spec.source.persistentVolumeName;
      if (name !== undefined) {
        pushInvalid(dns1123SubdomainErrors(name), name, 'spec.source.persistentVolumeName', errors);
      }
      return errors;
    },
    validateUpdate(object, old) {
      const errors = newErrors();
      checkUnchanged(object.spec, old.spec, 'spec', errors);
      return errors;
    },
    prepareForStatusUpdate: restoreMetadata,
    validateStatusUpdate: validateStatus,
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type VolumeAttachment = VolumeAttachmentType;

/** Restores the metadata that a status write may not change. */
function restoreMetadata(object: VolumeAttachmentType, { metadata: old }: VolumeAttachmentType): void {
  const { labels: _l, annotations: _a, finalizers: _f, ownerReferences: _o, ...kept } = object.metadata ?? {};
  object.metadata = {
    ...kept,
    ...(old?.labels ? { labels: old.labels } : {}),
    ...(old?.annotations ? { annotations: old.annotations } : {}),
    ...(old?.finalizers ? { finalizers: old.finalizers } : {}),
    ...(old?.ownerReferences ? { ownerReferences: old.ownerReferences } : {}),
  };
}

function validateAttachment({ spec }: VolumeAttachmentType): FieldError[] {
  const errors = newErrors();
  checkText(spec.attacher, 'spec.attacher', errors);
  checkSource(spec.source, 'spec.source', errors);
  pushInvalid(dns1123SubdomainErrors(spec.nodeName), spec.nodeName, 'spec.nodeName', errors);
  return errors;
}

function checkSource(source: VolumeAttachmentSource, path: string, errors: Errors): void {
  const { inlineVolumeSpec, persistentVolumeName } = source;
  const text = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
  if (inlineVolumeSpec && persistentVolumeName !== undefined) errors.push(fieldError.forbidden(path, text));
  else if (inlineVolumeSpec) checkVolumeSpec(inlineVolumeSpec, true, `${path}.inlineVolumeSpec`, errors);
  else if (persistentVolumeName === undefined) errors.push(fieldError.required(path, text));
  else if (persistentVolumeName === '') {
    errors.push(fieldError.required(`${path}.persistentVolumeName`, 'must specify non empty persistentVolumeName'));
  }
}

function validateStatus({ status }: VolumeAttachmentType): FieldError[] {
  const errors = newErrors();
  let bytes = 0;
  for (const [key, value] of Object.entries(status?.attachmentMetadata ?? {})) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxMetadataBytes) errors.push(fieldError.tooLong('status.attachmentMetadata', maxMetadataBytes));
  checkFailure(status?.attachError, 'status.attachError', errors);
  checkFailure(status?.detachError, 'status.detachError', errors);
  return errors;
}

function checkFailure(failure: VolumeError | undefined, path: string, errors: Errors): void {
  if (Buffer.byteLength(failure?.message ?? '') > maxMessageBytes) {
    errors.push(fieldError.tooLong(`${path}.message`, maxMetadataBytes));
  }
  const code = failure?.errorCode;
  if (code !== undefined && code < 0) {
    errors.push(fieldError.invalid(`${path}.errorCode`, code, 'must be between 0 and 2147483647, inclusive'));
  }
}
