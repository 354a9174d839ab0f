import { always, filled, type Infer, inline, optional, required, type Schema, s } from '@keelson/core';
import { EnvFromSourceSchema, EnvVarSchema } from './env.ts';
import { LifecycleSchema, ProbeSchema } from './probes.ts';
import { ContainerResizePolicySchema, ResourceRequirementsSchema } from './resources.ts';
import { SecurityContextSchema } from './security-context.ts';
import { VolumeDeviceSchema, VolumeMountSchema } from './volumes.ts';

const containerPort = s.message('k8s.io.api.core.v1.ContainerPort', 'A port of a container.', {
  name: optional(1, s.string(), 'Name for services, unique in the pod, at most 15 characters.'),
  hostPort: optional(2, s.int32(), 'Port of the node that is forwarded to this port.'),
  containerPort: always(3, s.int32(), 'Port in the container, 1 to 65535.'),
  protocol: optional(4, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP.', { default: 'TCP' }),
  hostIP: optional(5, s.string(), 'Address of the node for hostPort.'),
});
export interface ContainerPort extends Infer<typeof containerPort> {}
export const ContainerPortSchema: Schema<ContainerPort> = containerPort;

const containerRestartRuleOnExitCodes = s.message(
  'k8s.io.api.core.v1.ContainerRestartRuleOnExitCodes',
  'A condition on an exit code.',
  {
    operator: required(1, s.string(), 'In or NotIn.'),
    values: optional(2, s.list(s.int32(), { listType: 'set' }), 'Exit codes to compare with, at most 255.'),
  },
);
export interface ContainerRestartRuleOnExitCodes extends Infer<typeof containerRestartRuleOnExitCodes> {}
export const ContainerRestartRuleOnExitCodesSchema: Schema<ContainerRestartRuleOnExitCodes> =
  containerRestartRuleOnExitCodes;

const containerRestartRule = s.message(
  'k8s.io.api.core.v1.ContainerRestartRule',
  'What to do when a container has ended in a certain way.',
  {
    action: required(1, s.string(), 'Restart or RestartAllContainers.'),
    exitCodes: optional(2, ContainerRestartRuleOnExitCodesSchema, 'Exit codes to which the rule applies.'),
  },
);
export interface ContainerRestartRule extends Infer<typeof containerRestartRule> {}
export const ContainerRestartRuleSchema: Schema<ContainerRestartRule> = containerRestartRule;

/** Fields that every sort of container has, under the same numbers. */
const containerFields = {
  name: always(1, s.string(), 'Name of the container, a DNS label, unique in the pod. Cannot be changed.'),
  image: optional(2, s.string(), 'Image to run.'),
  command: optional(
    3,
    s.list(s.string(), { listType: 'atomic' }),
    "Program, in place of the image's entry point; no shell. $(NAME) is replaced from the environment.",
  ),
  args: optional(
    4,
    s.list(s.string(), { listType: 'atomic' }),
    "Arguments, in place of the image's. $(NAME) is replaced from the environment.",
  ),
  workingDir: optional(5, s.string(), 'Working directory; that of the image by default.'),
  ports: optional(
    6,
    s.listByKey(ContainerPortSchema, 'containerPort', { listMapKeys: ['containerPort', 'protocol'] }),
    'Ports of the container, for information.',
  ),
  envFrom: optional(
    19,
    s.list(EnvFromSourceSchema, { listType: 'atomic' }),
    'Environment variables from whole ConfigMaps and Secrets; later ones take precedence.',
  ),
  env: optional(7, s.listByKey(EnvVarSchema, 'name'), 'Environment variables; they win over envFrom.'),
  resources: filled(8, ResourceRequirementsSchema, 'Resources it needs and may use.'),
  resizePolicy: optional(
    23,
    s.list(ContainerResizePolicySchema, { listType: 'atomic' }),
    'What a change of resources means for the running container.',
  ),
  restartPolicy: optional(
    24,
    s.string(),
    "Always makes an init container a sidecar; OnFailure and Never override the pod's policy.",
    { presence: true },
  ),
  restartPolicyRules: optional(
    25,
    s.list(ContainerRestartRuleSchema, { listType: 'atomic' }),
    'Rules by exit code; the first that matches decides, otherwise restartPolicy.',
  ),
  volumeMounts: optional(9, s.listByKey(VolumeMountSchema, 'mountPath'), 'Volumes in its file system.'),
  volumeDevices: optional(21, s.listByKey(VolumeDeviceSchema, 'devicePath'), 'Raw block devices.'),
  livenessProbe: optional(10, ProbeSchema, 'Failing restarts the container.'),
  readinessProbe: optional(11, ProbeSchema, 'Failure removes the pod from its services.'),
  startupProbe: optional(
    22,
    ProbeSchema,
    'The other probes wait until this one has succeeded; failing restarts the container.',
  ),
  lifecycle: optional(12, LifecycleSchema, 'What is done after the start and before the end.'),
  terminationMessagePath: optional(
    13,
    s.string(),
    'File whose content becomes the message of the ended container, at most 4096 bytes.',
    { default: '/dev/termination-log' },
  ),
  terminationMessagePolicy: optional(
    20,
    s.string({ values: ['FallbackToLogsOnError', 'File'] }),
    'File, or FallbackToLogsOnError to take the end of the log after a failure.',
    { default: 'File' },
  ),
  imagePullPolicy: optional(
    14,
    s.string({ values: ['Always', 'IfNotPresent', 'Never'] }),
    'Always, Never or IfNotPresent; Always by default for the tag latest, otherwise IfNotPresent.',
  ),
  securityContext: optional(15, SecurityContextSchema, 'Security settings.'),
  stdin: optional(16, s.bool(), 'True keeps a buffer for standard input.'),
  stdinOnce: optional(17, s.bool(), 'True closes standard input after the first attached client has left.'),
  tty: optional(18, s.bool(), 'True allocates a terminal; requires stdin.'),
} as const;

const container = s.message('k8s.io.api.core.v1.Container', 'A program that runs in a pod.', containerFields);
export interface Container extends Infer<typeof container> {}
export const ContainerSchema: Schema<Container> = container;

const ephemeralContainerCommon = s.message(
  'k8s.io.api.core.v1.EphemeralContainerCommon',
  'The part of an ephemeral container that it shares with others.',
  containerFields,
);
export interface EphemeralContainerCommon extends Infer<typeof ephemeralContainerCommon> {}
export const EphemeralContainerCommonSchema: Schema<EphemeralContainerCommon> = ephemeralContainerCommon;

const ephemeralContainer = s.message(
  'k8s.io.api.core.v1.EphemeralContainer',
  'A container that is added to a running pod for debugging; never restarted or removed.',
  {
    ephemeralContainerCommon: inline(1, EphemeralContainerCommonSchema),
    targetContainerName: optional(2, s.string(), 'Container whose process namespace it joins.'),
  },
);
export interface EphemeralContainer extends Infer<typeof ephemeralContainer> {}
export const EphemeralContainerSchema: Schema<EphemeralContainer> = ephemeralContainer;
