import { type FieldError, fieldError, qualifiedNameErrors, type Strategy } from '@keelson/core';
import { newErrors, pushInvalid } from '../../../validation/checks.ts';
import type { Namespace } from '../schema/index.ts';

const ownFinalizer = 'kubernetes';
const nameLabel = 'kubernetes.io/metadata.name';
const lasting = new Set(['default', 'kube-system', 'kube-public']);

/**
 * Behaviour of namespaces: see docs/reference/api-rules.md#namespace-life-cycle. A deleted namespace remains until
 * `spec.finalizers`, which only the `finalize` subresource changes, is empty.
 */
export const namespaceStrategy: Strategy<Namespace> = {
  nameRule: 'dns1123Label',
  generation: 'none',
  deleteReturnsObject: true,
  default(namespace) {
    labelWithName(namespace);
    namespace.status = { ...namespace.status, phase: namespace.status?.phase || 'Active' };
  },
  prepareForCreate(namespace) {
    labelWithName(namespace);
    const finalizers = namespace.spec?.finalizers ?? [];
    if (!finalizers.includes(ownFinalizer)) {
      namespace.spec = { ...namespace.spec, finalizers: [...finalizers, ownFinalizer] };
    }
    namespace.status = { phase: 'Active' };
  },
  prepareForUpdate(namespace, old) {
    namespace.spec = { ...namespace.spec };
    if (old.spec?.finalizers) namespace.spec.finalizers = old.spec.finalizers;
    else delete namespace.spec.finalizers;
  },
  validate: validateNamespace,
  validateStatusUpdate: validateStatus,
  beginDeletion(namespace) {
    namespace.status = { ...namespace.status, phase: 'Terminating' };
  },
  heldBack: (namespace) => (namespace.spec?.finalizers?.length ?? 0) > 0,
  undeletable: (name) => (lasting.has(name) ? 'this namespace may not be deleted' : undefined),
};

/** Sets the label with the name, by which selectors match a namespace. */
function labelWithName(namespace: Namespace): void {
  const { metadata } = namespace;
  if (metadata?.name && metadata.labels?.[nameLabel] !== metadata.name) {
    metadata.labels = { ...metadata.labels, [nameLabel]: metadata.name };
  }
}

function validateNamespace(namespace: Namespace): FieldError[] {
  const errors = newErrors();
  namespace.spec?.finalizers?.forEach((finalizer, i) => {
    const path = `spec.finalizers[${i}]`;
    pushInvalid(qualifiedNameErrors(finalizer), finalizer, path, errors);
    if (finalizer !== ownFinalizer && !finalizer.includes('/')) {
      errors.push(
        fieldError.invalid(path, finalizer, 'name is neither a standard finalizer name nor is it fully qualified'),
      );
    }
  });
  return errors;
}

function validateStatus(namespace: Namespace): FieldError[] {
  const phase = namespace.status?.phase ?? '';
  const deleting = Boolean(namespace.metadata?.deletionTimestamp);
  if (deleting && phase !== 'Terminating') {
    return [fieldError.invalid('status.phase', phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")];
  }
  if (!deleting && phase !== 'Active') {
    return [fieldError.invalid('status.phase', phase, "may only be 'Active' if `deletionTimestamp` is empty")];
  }
  return [];
}

/** Applies the changes of `PUT .../finalize`, which may change only `spec.finalizers`. */
export function applyFinalize(stored: Namespace, object: Namespace): void {
  const finalizers = object.spec?.finalizers ?? [];
  stored.spec = { ...stored.spec };
  if (finalizers.length > 0) stored.spec.finalizers = finalizers;
  else delete stored.spec.finalizers;
}
