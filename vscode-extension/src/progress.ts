/**
 * Progress that the user can stop.
 *
 * vscode-languageclient shows what the server reports in the status bar, where there is no Cancel. Cancellable
 * work is shown as a notification here; everything else goes the client's own way.
 */
import * as vscode from "vscode";
import type {
  BaseLanguageClient,
  HandleWorkDoneProgressSignature,
  ProgressToken,
  WorkDoneProgressBegin,
  WorkDoneProgressEnd,
  WorkDoneProgressReport,
} from "vscode-languageclient/node";

interface Running {
  readonly notification: vscode.Progress<{ message?: string; increment?: number }>;
  readonly finish: () => void;
  percentage: number;
}

export class CancellableProgress implements vscode.Disposable {
  private readonly running = new Map<ProgressToken, Running>();

  constructor(private readonly client: () => Pick<BaseLanguageClient, "sendNotification"> | undefined) {}

  /** For `Middleware.handleWorkDoneProgress`. */
  handle(
    token: ProgressToken,
    params: WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd,
    next: HandleWorkDoneProgressSignature,
  ): void {
    if (params.kind === "begin" && params.cancellable === true) {
      this.begin(token, params);
      return;
    }
    const running = this.running.get(token);
    if (running === undefined) {
      next(token, params);
    } else if (params.kind === "report") {
      report(running, params);
    } else {
      this.running.delete(token);
      running.finish();
      next(token, params); // lets the client forget the token
    }
  }

  private begin(token: ProgressToken, begin: WorkDoneProgressBegin): void {
    const options = { location: vscode.ProgressLocation.Notification, cancellable: true, title: begin.title };
    void vscode.window.withProgress(options, (notification, cancellation) => {
      cancellation.onCancellationRequested(() => {
        void this.client()?.sendNotification("window/workDoneProgress/cancel", { token });
      });
      return new Promise<void>((finish) => {
        const running = { notification, finish, percentage: 0 };
        this.running.set(token, running);
        report(running, begin);
      });
    });
  }

  /** A server that stops or crashes ends no progress: its notifications are taken down here. */
  dispose(): void {
    for (const running of this.running.values()) {
      running.finish();
    }
    this.running.clear();
  }
}

/** VS Code counts steps, the protocol counts up to a percentage. */
function report(running: Running, update: { message?: string; percentage?: number }): void {
  const percentage = update.percentage ?? running.percentage;
  running.notification.report({
    increment: percentage - running.percentage,
    ...(update.message === undefined ? {} : { message: update.message }),
  });
  running.percentage = percentage;
}
