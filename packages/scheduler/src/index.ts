export const schedulerName = 'default-scheduler';
