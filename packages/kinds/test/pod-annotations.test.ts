import { systemUser } from '@keelson/core';
import test from 'ava';
import { Pod, PodTemplate } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { contextOf, create, defaulted, update } from './helpers/writes.ts';

const appArmor = 'container.apparmor.security.beta.kubernetes.io/';
const seccomp = 'seccomp.security.alpha.kubernetes.io/pod';
const seccompContainer = 'container.seccomp.security.alpha.kubernetes.io/';
const mirror = 'kubernetes.io/config.mirror';
const cost = 'controller.kubernetes.io/pod-deletion-cost';
const unconfined = { type: 'Unconfined' };
const runtimeDefault = { type: 'RuntimeDefault' };
const localhost = (localhostProfile: string) => ({ type: 'Localhost', localhostProfile });

type Annotations = Record<string, string>;
/** The one container of a pod with a security context. */
const contained = (securityContext: object) => ({ containers: [{ ...container, securityContext }] });

const applied: readonly [annotation: string, spec: Record<string, unknown>, profile: unknown, warns: boolean][] = [
  ['unconfined', {}, unconfined, true],
  ['runtime/default', {}, runtimeDefault, true],
  ['localhost/x', {}, localhost('x'), true],
  ['localhost/ x', {}, undefined, true],
  ['', {}, undefined, true],
  ['localhost/x', { securityContext: { appArmorProfile: localhost('x') } }, undefined, false],
  ['localhost/y', { securityContext: { appArmorProfile: localhost('x') } }, localhost('y'), true],
  ['unconfined', contained({ appArmorProfile: unconfined }), unconfined, false],
  ['unconfined', { os: { name: 'windows' } }, undefined, false],
];

for (const [annotation, spec, profile, warns] of applied) {
  const given = JSON.stringify(spec);
  test(`the annotation "${annotation}" sets the AppArmor profile of a new container with a warning: ${given}`, (t) => {
    const annotations = { [`${appArmor}app`]: annotation, [`${appArmor}other`]: 'unconfined' };
    const pod = defaulted(Pod, podManifest(spec, { annotations }));
    const warnings: string[] = [];
    Pod.strategy.prepareForCreate?.(pod, { ...contextOf(systemUser), warn: (text) => warnings.push(text) });
    t.deepEqual(pod.spec.containers[0]?.securityContext?.appArmorProfile, profile);
    const text = `metadata.annotations[${appArmor}app]: deprecated since v1.30; use the "appArmorProfile" field instead`;
    t.deepEqual(warnings, warns ? [text] : []);
  });
}

const appArmorField = 'spec.containers[0].securityContext.appArmorProfile';
const seccompField = 'securityContext.seccompProfile';
const checked: readonly [annotations: Annotations, spec: Record<string, unknown>, messages: readonly string[]][] = [
  [{ [`${appArmor}app`]: 'localhost/' }, {}, []],
  [
    { [`${appArmor}x`]: 'a"b' },
    {},
    [
      `metadata.annotations[${appArmor}x]: Invalid value: "x": container not found`,
      `metadata.annotations[${appArmor}x]: Invalid value: "a\\"b": invalid AppArmor profile name: "a\\"b"`,
    ],
  ],
  [
    { [`${appArmor}app`]: 'runtime/default' },
    contained({ appArmorProfile: unconfined }),
    [`${appArmorField}.type: Forbidden: apparmor type in annotation and field must match`],
  ],
  [
    { [`${appArmor}app`]: 'localhost/y' },
    contained({ appArmorProfile: localhost('x') }),
    [`${appArmorField}.localhostProfile: Forbidden: apparmor profile in annotation and field must match`],
  ],
  [{ [seccomp]: 'docker/default' }, { securityContext: { seccompProfile: runtimeDefault } }, []],
  [{ [seccomp]: 'localhost/a', [`${seccompContainer}x`]: 'unconfined' }, {}, []],
  [
    { [seccomp]: 'localhost//etc', [`${seccompContainer}x`]: '' },
    {},
    [
      `metadata.annotations.${seccomp}: Invalid value: "/etc": must be a relative path`,
      `metadata.annotations.${seccompContainer}x: Invalid value: "": must be a valid seccomp profile`,
    ],
  ],
  [
    { [seccomp]: 'unconfined' },
    { securityContext: { seccompProfile: runtimeDefault } },
    [`spec.${seccompField}.type: Forbidden: seccomp type in annotation and field must match`],
  ],
  [
    { [`${seccompContainer}app`]: 'localhost/b' },
    contained({ seccompProfile: localhost('a') }),
    [
      `spec.containers[0].${seccompField}.localhostProfile: Forbidden: seccomp profile in annotation and field must match`,
    ],
  ],
];

for (const [annotations, spec, messages] of checked) {
  test(`annotations and fields of profiles: ${JSON.stringify({ annotations, spec })}`, (t) => {
    const manifest = podManifest(spec, { annotations });
    t.deepEqual(create(Pod, manifest).messages, messages);
    const template = { metadata: { annotations }, spec: manifest.spec };
    const head = { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 't', namespace: 'default' } };
    const expected = messages.map((text) => `template.${text.replace(/^metadata\./, '')}`);
    t.deepEqual(create(PodTemplate, { ...head, template }).messages, expected);
  });
}

test('the annotations of a pod for AppArmor profiles and mirror pods cannot be changed', (t) => {
  const { object: old } = create(Pod, podManifest({}, { annotations: { [`${appArmor}app`]: 'unconfined', a: 'b' } }));
  const changed = (annotations: Annotations) =>
    update(Pod, old, (pod) => {
      pod.metadata = { ...pod.metadata, annotations };
    }).messages;
  t.deepEqual(changed({ [`${appArmor}app`]: 'unconfined', [seccomp]: 'unconfined' }), []);
  const at = `metadata.annotations[${appArmor}app]: Forbidden`;
  t.deepEqual(changed({}), [`${at}: may not remove or update AppArmor annotations`]);
  t.deepEqual(changed({ [`${appArmor}app`]: 'localhost/x' }), [`${at}: may not remove or update AppArmor annotations`]);
  t.deepEqual(changed({ [`${appArmor}app`]: 'unconfined', [`${appArmor}x`]: 'unconfined' }), [
    `metadata.annotations[${appArmor}x]: Forbidden: may not add AppArmor annotations`,
  ]);
  t.deepEqual(changed({ [`${appArmor}app`]: 'unconfined', [mirror]: 'x' }), [
    `metadata.annotations[${mirror}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`,
    `metadata.annotations[${mirror}]: Forbidden: may not add mirror pod annotation`,
  ]);
});

test('a deletion cost is an integer, and a mirror pod has a node', (t) => {
  const messages = (annotations: Annotations, spec: Record<string, unknown> = {}) =>
    create(Pod, podManifest(spec, { annotations })).messages;
  for (const value of ['0', '-5', '2147483647']) t.deepEqual(messages({ [cost]: value }), []);
  for (const value of ['x', '', '+5', '08', '2147483648']) {
    t.deepEqual(messages({ [cost]: value }), [
      `metadata.annotations[${cost}]: Invalid value: "${value}": must be a 32bit integer`,
    ]);
  }
  t.deepEqual(messages({ [mirror]: 'x' }, { nodeName: 'n' }), []);
  t.deepEqual(messages({ [mirror]: 'x' }), [
    `metadata.annotations[${mirror}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`,
  ]);
});
