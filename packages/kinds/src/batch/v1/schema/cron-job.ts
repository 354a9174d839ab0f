import { always, embedded, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { ObjectReferenceSchema } from '../../../core/v1/schema/references.ts';
import { JobTemplateSpecSchema } from './job.ts';

const cronJobSpec = s.message('k8s.io.api.batch.v1.CronJobSpec', 'When jobs are created, and their template.', {
  schedule: always(1, s.string(), 'Minute, hour, day, month and weekday as in crontab, or `@daily`, `@every 2h`.'),
  timeZone: optional(8, s.string(), 'Time zone of the schedule such as Europe/Berlin; without it UTC.', {
    presence: true,
  }),
  startingDeadlineSeconds: optional(2, s.int64(), 'Seconds after which a job that was not made is left out.', {
    presence: true,
  }),
  concurrencyPolicy: optional(
    3,
    s.string({ values: ['Allow', 'Forbid', 'Replace'] }),
    'What happens while an earlier job runs: Allow both, Forbid the new one, or Replace the earlier one.',
  ),
  suspend: optional(4, s.bool(), 'True makes no further jobs.', { presence: true }),
  jobTemplate: always(5, JobTemplateSpecSchema, 'Template of the jobs.'),
  successfulJobsHistoryLimit: optional(6, s.int32(), 'Succeeded jobs that are kept; 3 by default.', {
    presence: true,
  }),
  failedJobsHistoryLimit: optional(7, s.int32(), 'Failed jobs that are kept; 1 by default.', { presence: true }),
});
export interface CronJobSpec extends Infer<typeof cronJobSpec> {}
export const CronJobSpecSchema: Schema<CronJobSpec> = cronJobSpec;

const cronJobStatus = s.message('k8s.io.api.batch.v1.CronJobStatus', 'Observed state of a cron job.', {
  active: optional(1, s.list(ObjectReferenceSchema, { listType: 'atomic' }), 'Jobs that are running.'),
  lastScheduleTime: optional(4, s.time(), 'When a job was last made.'),
  lastSuccessfulTime: optional(5, s.time(), 'When a job last succeeded.'),
});
export interface CronJobStatus extends Infer<typeof cronJobStatus> {}
export const CronJobStatusSchema: Schema<CronJobStatus> = cronJobStatus;

const cronJob = s.message('k8s.io.api.batch.v1.CronJob', 'Makes jobs at the times of a schedule.', {
  spec: embedded(2, CronJobSpecSchema, 'Intended state.'),
  status: filled(3, CronJobStatusSchema, 'Observed state.'),
});
export interface CronJob extends KubeObject, Infer<typeof cronJob> {}
export const CronJobSchema: Schema<CronJob> = cronJob;
