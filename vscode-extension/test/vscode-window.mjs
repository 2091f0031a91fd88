// The part of VS Code that progress.ts needs, recording what a user would see.
export const ProgressLocation = { Notification: 15 };
export const shown = [];
export const window = {
  withProgress(options, task) {
    const notification = { ...options, reports: [], open: true, cancel: undefined };
    const progress = { report: (update) => notification.reports.push(update) };
    const token = { onCancellationRequested: (listener) => (notification.cancel = listener) };
    shown.push(notification);
    return task(progress, token).then(() => (notification.open = false));
  },
};
