import { type Column, defineKind, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn, sinceText, wide } from '../../columns/columns.ts';
import { checkNonNegative, type Errors, newErrors } from '../../validation/checks.ts';
import { selectorText } from '../../workload/workload-columns.ts';
import { parseSchedule, ScheduleError } from '../schedule/parse-schedule.ts';
import { isTimeZone } from '../schedule/time-zone.ts';
import { checkJobTemplate } from './check-job.ts';
import { defaultJobSpec, jobWarnings } from './job.ts';
import { CronJobSchema, type CronJobSpec, type CronJob as CronJobType } from './schema/index.ts';

/** Maximum length of the name of a cron job. The names of its jobs have a suffix of 11 characters. */
const maxName = 52;
const policies = ['Allow', 'Forbid', 'Replace'];

const containersOf = ({ spec }: CronJobType) => spec.jobTemplate?.spec?.template?.spec?.containers ?? [];

const columns: readonly Column<CronJobType>[] = [
  nameColumn(),
  column('Schedule', 'string', 'When jobs are created.', ({ spec }) => spec.schedule ?? ''),
  column('Timezone', 'string', 'Time zone of the schedule.', ({ spec }) => spec.timeZone ?? '<none>'),
  {
    name: 'Suspend',
    type: 'boolean',
    description: 'Whether no further jobs are created.',
    priority: 0,
    value: ({ spec }) => (spec.suspend === undefined ? '<unset>' : spec.suspend ? 'True' : 'False'),
  },
  column('Active', 'integer', 'Jobs that are running.', ({ status }) => status?.active?.length ?? 0),
  column('Last Schedule', 'string', 'Time since a job was last made.', ({ status }, { now }) =>
    status?.lastScheduleTime ? sinceText(status.lastScheduleTime, now) : '<none>',
  ),
  ageColumn,
  wide('Containers', 'string', 'Names of the containers.', (job) =>
    containersOf(job)
      .map(({ name }) => name)
      .join(','),
  ),
  wide('Images', 'string', 'Images of the containers.', (job) =>
    containersOf(job)
      .map(({ image }) => image ?? '')
      .join(','),
  ),
  wide('Selector', 'string', 'Labels of the pods.', ({ spec }) => selectorText(spec.jobTemplate?.spec?.selector)),
];

/** Makes jobs at the times of a schedule. */
export const CronJob: KindDefinition<CronJobType> = defineKind({
  group: 'batch',
  version: 'v1',
  kind: 'CronJob',
  names: { shortNames: ['cj'], categories: ['all'] },
  schema: CronJobSchema,
  strategy: {
    generation: 'spec',
    default({ spec }) {
      spec.concurrencyPolicy ||= 'Allow';
      spec.suspend ??= false;
      spec.successfulJobsHistoryLimit ??= 3;
      spec.failedJobsHistoryLimit ??= 1;
      defaultJobSpec(spec.jobTemplate.spec);
    },
    validate({ spec }) {
      const errors = newErrors();
      checkSchedule(spec, errors);
      checkNonNegative(spec.startingDeadlineSeconds, 'spec.startingDeadlineSeconds', errors);
      checkTimeZone(spec.timeZone, errors);
      const { concurrencyPolicy = '' } = spec;
      if (!policies.includes(concurrencyPolicy)) {
        errors.push(fieldError.notSupported('spec.concurrencyPolicy', concurrencyPolicy, policies));
      }
      checkJobTemplate(spec.jobTemplate, 'spec.jobTemplate', errors);
      checkNonNegative(spec.successfulJobsHistoryLimit, 'spec.successfulJobsHistoryLimit', errors);
      checkNonNegative(spec.failedJobsHistoryLimit, 'spec.failedJobsHistoryLimit', errors);
      return errors;
    },
    validateCreate({ metadata }) {
      const name = metadata?.name ?? '';
      if (name.length <= maxName) return [];
      return [fieldError.invalid('metadata.name', name, `must be no more than ${maxName} characters`)];
    },
    warnings: (cronJob, old) => jobWarnings(cronJob, old, cronJob.spec.jobTemplate.spec, 'spec.jobTemplate.spec'),
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type CronJob = CronJobType;

function checkSchedule({ schedule }: CronJobSpec, errors: Errors): void {
  const path = 'spec.schedule';
  if (!schedule) {
    errors.push(fieldError.required(path));
    return;
  }
  try {
    parseSchedule(schedule.replace(/^(?:CRON_)?TZ=\S*\s+/, ''));
  } catch (error) {
    if (!(error instanceof ScheduleError)) throw error;
    errors.push(fieldError.invalid(path, schedule, error.message));
  }
  if (schedule.includes('TZ')) {
    const detail = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
    errors.push(fieldError.invalid(path, schedule, detail));
  }
}

function checkTimeZone(zone: string | undefined, errors: Errors): void {
  const path = 'spec.timeZone';
  if (zone === undefined) return;
  if (zone === '') errors.push(fieldError.invalid(path, zone, 'timeZone must be nil or non-empty string'));
  else if (zone.toLowerCase() === 'local') {
    const detail = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    errors.push(fieldError.invalid(path, zone, detail));
  } else if (!isTimeZone(zone)) {
    errors.push(fieldError.invalid(path, zone, `unknown time zone ${zone.slice(0, 100)}`));
  }
}
