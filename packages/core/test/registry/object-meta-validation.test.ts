import test from 'ava';
import type { ObjectMeta } from '../../src/meta/types.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../src/registry/common-fields.ts';

const good: ObjectMeta = { name: 'a', namespace: 'n' };

function found(
  meta: ObjectMeta,
  rules: { nameRule?: 'dns1123Subdomain' | 'dns1123Label' | 'dns1035Label' | 'pathSegment'; namespaced?: boolean } = {},
) {
  const errors = validateObjectMeta(meta, { nameRule: 'dns1123Subdomain', namespaced: true, ...rules });
  return errors.map((error) => `${error.reason} ${error.field}`);
}

test('good metadata has no errors', (t) => {
  t.deepEqual(found(good), []);
  t.deepEqual(found({ name: 'a' }, { namespaced: false }), []);
  t.deepEqual(
    found({
      ...good,
      generateName: 'a-',
      labels: { 'example.com/a': '', b: 'x_Y.z' },
      annotations: { 'Example.com/UPPER': 'anything at all\n' },
      finalizers: ['orphan', 'example.com/f', 'kubernetes'],
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true }],
    }),
    [],
  );
});

test('names follow the rule of the kind', (t) => {
  t.deepEqual(found({ namespace: 'n' }), ['FieldValueRequired metadata.name']);
  t.deepEqual(found({ ...good, name: 'A' }), ['FieldValueInvalid metadata.name']);
  t.deepEqual(found({ ...good, name: 'a.b' }), []);
  t.deepEqual(found({ ...good, name: 'a.b' }, { nameRule: 'dns1123Label' }), ['FieldValueInvalid metadata.name']);
  t.deepEqual(found({ ...good, name: '1a' }, { nameRule: 'dns1035Label' }), ['FieldValueInvalid metadata.name']);
  t.deepEqual(found({ ...good, name: 'system:a' }, { nameRule: 'pathSegment' }), []);
  t.deepEqual(found({ ...good, name: '..' }, { nameRule: 'pathSegment' }), ['FieldValueInvalid metadata.name']);
  t.deepEqual(found({ ...good, generateName: 'A-' }), ['FieldValueInvalid metadata.generateName']);
});

test('namespaces belong to namespaced kinds', (t) => {
  t.deepEqual(found({ name: 'a' }), ['FieldValueRequired metadata.namespace']);
  t.deepEqual(found(good, { namespaced: false }), ['FieldValueForbidden metadata.namespace']);
  t.deepEqual(found({ name: 'a', namespace: 'a.b' }), ['FieldValueInvalid metadata.namespace']);
});

test('labels, annotations and their sizes', (t) => {
  t.deepEqual(found({ ...good, labels: { 'a b': 'x' } }), ['FieldValueInvalid metadata.labels']);
  t.deepEqual(found({ ...good, labels: { a: 'x y' } }), ['FieldValueInvalid metadata.labels']);
  t.deepEqual(found({ ...good, annotations: { '/a': 'x' } }), ['FieldValueInvalid metadata.annotations']);
  const annotations = (bytes: number) => ({ ...good, annotations: { a: 'é'.repeat((bytes - 2) / 2), b: '' } });
  t.deepEqual(found(annotations(262_144)), []);
  t.deepEqual(found(annotations(262_146)), ['FieldValueTooLong metadata.annotations']);
});

test('finalizers are qualified names or standard finalizers, and the two deletion policies exclude each other', (t) => {
  t.deepEqual(found({ ...good, finalizers: ['mine'] }), ['FieldValueInvalid metadata.finalizers[0]']);
  t.deepEqual(found({ ...good, finalizers: ['a b/c'] }), ['FieldValueInvalid metadata.finalizers']);
  t.deepEqual(found({ ...good, finalizers: ['orphan', 'foregroundDeletion'] }), [
    'FieldValueInvalid metadata.finalizers',
  ]);
});

test('an unqualified finalizer is reported at its index, behind the errors of the whole list', (t) => {
  const errors = (finalizers: string[], finalizerRule?: 'qualifiedName') =>
    validateObjectMeta({ ...good, finalizers }, { nameRule: 'dns1123Subdomain', namespaced: true, finalizerRule }).map(
      ({ field, message }) => `${field} ${message.replace(/: .*/, '')}`,
    );
  t.deepEqual(errors(['orphan', 'foo', 'foregroundDeletion', '-x']), [
    'metadata.finalizers Invalid value',
    'metadata.finalizers Invalid value',
    'metadata.finalizers[1] Invalid value',
    'metadata.finalizers[3] Invalid value',
  ]);
  t.deepEqual(errors(['foo'], 'qualifiedName'), []);
});

test('owner references are complete, none is an Event, and one controls', (t) => {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
  t.deepEqual(found({ ...good, ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: '' }] }), [
    'FieldValueInvalid metadata.ownerReferences.apiVersion',
    'FieldValueInvalid metadata.ownerReferences.kind',
    'FieldValueInvalid metadata.ownerReferences.name',
    'FieldValueInvalid metadata.ownerReferences.uid',
  ]);
  t.deepEqual(found({ ...good, ownerReferences: [owner, { ...owner, kind: 'Event' }] }), [
    'FieldValueInvalid metadata.ownerReferences',
  ]);
  const controllers = [owner, { ...owner, name: 'q' }].map((each) => ({ ...each, controller: true }));
  t.deepEqual(found({ ...good, ownerReferences: controllers }), ['FieldValueInvalid metadata.ownerReferences']);
});

test('an update keeps what identifies the object and never grows finalizers of a deleting one', (t) => {
  const old: ObjectMeta = {
    ...good,
    uid: 'u',
    creationTimestamp: '2024-01-02T03:04:05Z',
    generation: 3,
    finalizers: ['example.com/a'],
  };
  const changed = (meta: ObjectMeta, from = old) =>
    validateObjectMetaUpdate(meta, from).map((error) => `${error.field}: ${error.message}`);
  t.deepEqual(changed(old), []);
  t.deepEqual(
    changed({ ...old, finalizers: ['example.com/a', 'example.com/b'], labels: { a: 'b' }, generation: 4 }),
    [],
  );
  t.deepEqual(changed({ ...old, uid: 'v' }), ['metadata.uid: Invalid value: "v": field is immutable']);
  t.deepEqual(changed({ ...old, generation: 2 }), ['metadata.generation: Invalid value: 2: must not be decremented']);
  t.deepEqual(changed({ ...old, deletionTimestamp: '2024-01-02T03:04:05Z' }).length, 1);
  t.deepEqual(changed({ ...old, labels: { 'a b': '' } }).length, 1);
  const deleting: ObjectMeta = { ...old, deletionTimestamp: '2024-01-02T03:04:05Z' };
  t.deepEqual(changed({ ...deleting, finalizers: [] }, deleting), []);
  t.deepEqual(changed({ ...deleting, finalizers: ['example.com/b'] }, deleting), [
    'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ["example.com/b"]',
  ]);
  t.deepEqual(validateObjectMetaUpdate({ ...good, creationTimestamp: null }, good), []);
});

test('the field paths of errors begin at the path of the metadata', (t) => {
  const [error] = validateObjectMeta(
    { namespace: 'n' },
    { nameRule: 'dns1123Label', namespaced: true, path: 'spec.template.metadata' },
  );
  t.is(error?.field, 'spec.template.metadata.name');
});
