import test from 'ava';
import { Pod } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { create, update } from './helpers/writes.ts';

const created = (annotations: Record<string, string>, spec: Record<string, unknown> = {}) =>
  create(Pod, podManifest(spec, { annotations }));
const appArmor = 'container.apparmor.security.beta.kubernetes.io';
const seccomp = 'seccomp.security.alpha.kubernetes.io/pod';
const mirror = 'kubernetes.io/config.mirror';
const cost = 'controller.kubernetes.io/pod-deletion-cost';

test('annotations with a meaning are validated', (t) => {
  for (const value of ['0', '-5', '2147483647']) t.deepEqual(created({ [cost]: value }).messages, []);
  for (const value of ['x', '', '+5', '08', '2147483648']) {
    t.deepEqual(created({ [cost]: value }).messages, [
      `metadata.annotations[${cost}]: Invalid value: "${value}": must be a 32bit integer`,
    ]);
  }
  t.deepEqual(created({ [mirror]: 'x' }, { nodeName: 'n' }).messages, []);
  t.deepEqual(created({ [mirror]: 'x' }).messages, [
    `metadata.annotations[${mirror}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`,
  ]);
  t.deepEqual(created({ [seccomp]: 'odd', [`${appArmor}/x`]: 'bad' }).messages, [
    `metadata.annotations.${seccomp}: Invalid value: "odd": must be a valid seccomp profile`,
    `metadata.annotations[${appArmor}/x]: Invalid value: "x": container not found`,
    `metadata.annotations[${appArmor}/x]: Invalid value: "bad": invalid AppArmor profile name: "bad"`,
  ]);
});

test('profiles in annotations and fields of a new pod must be the same', (t) => {
  const pod = (type: string) => ({ securityContext: { seccompProfile: { type } } });
  t.deepEqual(created({ [seccomp]: 'docker/default' }, pod('RuntimeDefault')).messages, []);
  t.deepEqual(created({ [seccomp]: 'unconfined' }, pod('RuntimeDefault')).messages, [
    'spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match',
  ]);
  const appArmorProfile = { type: 'Localhost', localhostProfile: 'a' };
  const containers = [{ ...container, securityContext: { appArmorProfile } }];
  t.deepEqual(created({ [`${appArmor}/app`]: 'localhost/a' }, { containers }).messages, []);
  t.deepEqual(created({ [`${appArmor}/app`]: 'localhost/b' }, { containers }).messages, [
    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation ' +
      'and field must match',
  ]);
});

test('a profile of AppArmor in an annotation of a new pod becomes that of the container', (t) => {
  const profileOf = (annotation: string, spec = {}) =>
    created({ [`${appArmor}/app`]: annotation }, spec).object.spec.containers[0]?.securityContext?.appArmorProfile;
  t.deepEqual(profileOf('localhost/a'), { type: 'Localhost', localhostProfile: 'a' });
  t.deepEqual(profileOf('runtime/default'), { type: 'RuntimeDefault' });
  const pod = { securityContext: { appArmorProfile: { type: 'Unconfined' } } };
  t.is(profileOf('unconfined', pod), undefined, 'the pod has it');
  t.is(profileOf(''), undefined);
});

test('mirror and AppArmor annotations can be neither added, changed nor removed', (t) => {
  const key = `${appArmor}/app`;
  const { object } = created({ [key]: 'unconfined', other: 'a' });
  const changed = (annotations: Record<string, string>) =>
    update(Pod, object, (pod) => {
      pod.metadata = { ...pod.metadata, annotations };
    }).messages;
  t.deepEqual(changed({ [key]: 'unconfined', other: 'b' }), []);
  t.deepEqual(changed({}), [`metadata.annotations[${key}]: Forbidden: may not remove or update AppArmor annotations`]);
  t.deepEqual(changed({ [key]: 'unconfined', [mirror]: 'x' }), [
    `metadata.annotations[${mirror}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`,
    `metadata.annotations[${mirror}]: Forbidden: may not add mirror pod annotation`,
  ]);
});
