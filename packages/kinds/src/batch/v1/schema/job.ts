import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  objectMetaSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';
import { PodTemplateSpecSchema } from '../../../core/v1/schema/pod.ts';

const podFailurePolicyOnExitCodesRequirement = s.message(
  'k8s.io.api.batch.v1.PodFailurePolicyOnExitCodesRequirement',
  'Exit codes of containers that a rule is about.',
  {
    containerName: optional(1, s.string(), 'Only the container of this name; without it every container.', {
      presence: true,
    }),
    operator: always(
      2,
      s.string({ values: ['In', 'NotIn'] }),
      'In, or NotIn for all codes but those given. 0 never matches.',
    ),
    values: always(3, s.list(s.int32(), { listType: 'set' }), 'The codes, in ascending order.'),
  },
);
export interface PodFailurePolicyOnExitCodesRequirement extends Infer<typeof podFailurePolicyOnExitCodesRequirement> {}
export const PodFailurePolicyOnExitCodesRequirementSchema: Schema<PodFailurePolicyOnExitCodesRequirement> =
  podFailurePolicyOnExitCodesRequirement;

const podFailurePolicyOnPodConditionsPattern = s.message(
  'k8s.io.api.batch.v1.PodFailurePolicyOnPodConditionsPattern',
  'A condition of pods that a rule is about.',
  {
    type: always(1, s.string(), 'Name of the condition.'),
    status: always(2, s.string(), 'True by default, False or Unknown.'),
  },
);
export interface PodFailurePolicyOnPodConditionsPattern extends Infer<typeof podFailurePolicyOnPodConditionsPattern> {}
export const PodFailurePolicyOnPodConditionsPatternSchema: Schema<PodFailurePolicyOnPodConditionsPattern> =
  podFailurePolicyOnPodConditionsPattern;

const podFailurePolicyRule = s.message(
  'k8s.io.api.batch.v1.PodFailurePolicyRule',
  'What one kind of failure means for the job.',
  {
    action: always(
      1,
      s.string({ values: ['Count', 'FailIndex', 'FailJob', 'Ignore'] }),
      'FailJob, FailIndex, Ignore or Count.',
    ),
    onExitCodes: optional(2, PodFailurePolicyOnExitCodesRequirementSchema, 'Exit codes that the rule is about.'),
    onPodConditions: optional(
      3,
      s.list(PodFailurePolicyOnPodConditionsPatternSchema, { listType: 'atomic' }),
      'Conditions of pods that the rule is about; one of them suffices.',
    ),
  },
);
export interface PodFailurePolicyRule extends Infer<typeof podFailurePolicyRule> {}
export const PodFailurePolicyRuleSchema: Schema<PodFailurePolicyRule> = podFailurePolicyRule;

const podFailurePolicy = s.message('k8s.io.api.batch.v1.PodFailurePolicy', 'What failures of pods mean for the job.', {
  rules: always(
    1,
    s.list(PodFailurePolicyRuleSchema, { listType: 'atomic' }),
    'Rules in the order of their use; the first that matches counts.',
  ),
});
export interface PodFailurePolicy extends Infer<typeof podFailurePolicy> {}
export const PodFailurePolicySchema: Schema<PodFailurePolicy> = podFailurePolicy;

const successPolicyRule = s.message('k8s.io.api.batch.v1.SuccessPolicyRule', 'When an indexed job has succeeded.', {
  succeededIndexes: optional(1, s.string(), 'Indexes that must have succeeded, as `1,3-5,7`.', { presence: true }),
  succeededCount: optional(2, s.int32(), 'How many indexes must have succeeded.', { presence: true }),
});
export interface SuccessPolicyRule extends Infer<typeof successPolicyRule> {}
export const SuccessPolicyRuleSchema: Schema<SuccessPolicyRule> = successPolicyRule;

const successPolicy = s.message('k8s.io.api.batch.v1.SuccessPolicy', 'When an indexed job has succeeded early.', {
  rules: always(
    1,
    s.list(SuccessPolicyRuleSchema, { listType: 'atomic' }),
    'Rules in the order of their use; one of them suffices.',
  ),
});
export interface SuccessPolicy extends Infer<typeof successPolicy> {}
export const SuccessPolicySchema: Schema<SuccessPolicy> = successPolicy;

const jobSpec = s.message('k8s.io.api.batch.v1.JobSpec', 'Intended state of a job.', {
  parallelism: optional(1, s.int32(), 'Most pods that run at once; 1 by default.', { presence: true }),
  completions: optional(2, s.int32(), 'Pods that must succeed; without it the success of any pod suffices.', {
    presence: true,
  }),
  activeDeadlineSeconds: optional(3, s.int64(), 'Seconds after which a job that is still active fails.', {
    presence: true,
  }),
  podFailurePolicy: optional(11, PodFailurePolicySchema, 'What failures of pods mean for the job.'),
  successPolicy: optional(16, SuccessPolicySchema, 'When an indexed job has succeeded early.'),
  backoffLimit: optional(7, s.int32(), 'Failures of pods that the job survives; 6 by default.', { presence: true }),
  backoffLimitPerIndex: optional(12, s.int32(), 'Failures of pods that each index survives.', { presence: true }),
  maxFailedIndexes: optional(13, s.int32(), 'Failed indexes that the job survives.', { presence: true }),
  selector: optional(4, labelSelectorSchema, 'Labels by which the pods are recognised; set by the server.'),
  manualSelector: optional(5, s.bool(), 'True for a selector and labels of your own.', { presence: true }),
  template: always(6, PodTemplateSpecSchema, 'Template of the pods; their restart policy is Never or OnFailure.'),
  ttlSecondsAfterFinished: optional(8, s.int32(), 'Seconds after its end at which the job is deleted.', {
    presence: true,
  }),
  completionMode: optional(
    9,
    s.string({ values: ['Indexed', 'NonIndexed'] }),
    'NonIndexed, or Indexed to number the pods from 0.',
    { presence: true },
  ),
  suspend: optional(10, s.bool(), 'True ends the pods and makes no new ones.', { presence: true }),
  podReplacementPolicy: optional(
    14,
    s.string({ values: ['Failed', 'TerminatingOrFailed'] }),
    'When a replacement is created: TerminatingOrFailed, or Failed to wait for the end of the pod.',
    { presence: true },
  ),
  managedBy: optional(15, s.string(), 'Controller of the job, as a path with a domain; without it the server.', {
    presence: true,
  }),
});
export interface JobSpec extends Infer<typeof jobSpec> {}
export const JobSpecSchema: Schema<JobSpec> = jobSpec;

const jobCondition = s.message('k8s.io.api.batch.v1.JobCondition', 'One observed condition of a job.', {
  type: always(1, s.string(), 'Complete, Failed, Suspended, FailureTarget or SuccessCriteriaMet.'),
  status: always(2, s.string(), 'True, False or Unknown.'),
  lastProbeTime: optional(3, s.time(), 'When the condition was last probed.'),
  lastTransitionTime: optional(4, s.time(), 'When status last changed.'),
  reason: optional(5, s.string(), 'Reason for the last transition, one CamelCase word.'),
  message: optional(6, s.string(), 'Human-readable message about the last change.'),
});
export interface JobCondition extends Infer<typeof jobCondition> {}
export const JobConditionSchema: Schema<JobCondition> = jobCondition;

const uncountedTerminatedPods = s.message(
  'k8s.io.api.batch.v1.UncountedTerminatedPods',
  'Pods that have ended and are not in the counts yet.',
  {
    succeeded: optional(1, s.list(s.string(), { listType: 'set' }), 'UIDs of pods that succeeded.'),
    failed: optional(2, s.list(s.string(), { listType: 'set' }), 'UIDs of pods that failed.'),
  },
);
export interface UncountedTerminatedPods extends Infer<typeof uncountedTerminatedPods> {}
export const UncountedTerminatedPodsSchema: Schema<UncountedTerminatedPods> = uncountedTerminatedPods;

const jobStatus = s.message('k8s.io.api.batch.v1.JobStatus', 'Observed state of a job.', {
  conditions: optional(
    1,
    s.list(JobConditionSchema, { patchStrategy: 'merge', patchMergeKey: 'type', listType: 'atomic' }),
    'Latest observations; Complete or Failed is the last.',
  ),
  startTime: optional(2, s.time(), 'When the controller first saw the job, or when it was last resumed.'),
  completionTime: optional(3, s.time(), 'When the job succeeded.'),
  active: optional(4, s.int32(), 'Pods that are pending or running and not terminating.'),
  succeeded: optional(5, s.int32(), 'Pods that succeeded.'),
  failed: optional(6, s.int32(), 'Pods that failed.'),
  terminating: optional(11, s.int32(), 'Pods that are pending or running and terminating.', { presence: true }),
  completedIndexes: optional(7, s.string(), 'Indexes that succeeded, as `1,3-5,7`.'),
  failedIndexes: optional(10, s.string(), 'Indexes that failed, as `1,3-5,7`.', { presence: true }),
  uncountedTerminatedPods: optional(
    8,
    UncountedTerminatedPodsSchema,
    'Pods that have ended and are not in the counts yet.',
  ),
  ready: optional(9, s.int32(), 'Active pods that are ready.', { presence: true }),
});
export interface JobStatus extends Infer<typeof jobStatus> {}
export const JobStatusSchema: Schema<JobStatus> = jobStatus;

const job = s.message('k8s.io.api.batch.v1.Job', 'Runs pods until a number of them have succeeded.', {
  spec: embedded(2, JobSpecSchema, 'Intended state.'),
  status: filled(3, JobStatusSchema, 'Observed state.'),
});
export interface Job extends KubeObject, Infer<typeof job> {}
export const JobSchema: Schema<Job> = job;

const jobTemplateSpec = s.message(
  'k8s.io.api.batch.v1.JobTemplateSpec',
  'Template of the jobs that a cron job creates.',
  {
    metadata: filled(1, objectMetaSchema, 'Labels and annotations of the jobs.'),
    spec: embedded(2, JobSpecSchema, 'Spec of the jobs.'),
  },
);
export interface JobTemplateSpec extends Infer<typeof jobTemplateSpec> {}
export const JobTemplateSpecSchema: Schema<JobTemplateSpec> = jobTemplateSpec;
