# Lets a visitor choose a picture for the page's file field, through the system's own chooser: the app itself reads no
# storage and asks for no permission.
.class public final Ledgekit/webview/PictureChooser;
.super Landroid/webkit/WebChromeClient;
.source "PictureChooser.smali"

.field private static final REQUEST:I = 0x7f

.field private final activity:Landroid/app/Activity;
.field private waiting:Landroid/webkit/ValueCallback;

.method public constructor <init>(Landroid/app/Activity;)V
    .locals 0
    invoke-direct {p0}, Landroid/webkit/WebChromeClient;-><init>()V
    iput-object p1, p0, Ledgekit/webview/PictureChooser;->activity:Landroid/app/Activity;
    return-void
.end method

# answer(null);                                        // an older question that nobody answered
# waiting = callback;
# try { activity.startActivityForResult(params.createIntent(), REQUEST); }
# catch (ActivityNotFoundException e) { answer(null); }
# return true;
.method public onShowFileChooser(Landroid/webkit/WebView;Landroid/webkit/ValueCallback;Landroid/webkit/WebChromeClient$FileChooserParams;)Z
    .locals 3
    const/4 v2, 0x0
    invoke-direct {p0, v2}, Ledgekit/webview/PictureChooser;->answer([Landroid/net/Uri;)V
    iput-object p2, p0, Ledgekit/webview/PictureChooser;->waiting:Landroid/webkit/ValueCallback;
    :ask
    invoke-virtual {p3}, Landroid/webkit/WebChromeClient$FileChooserParams;->createIntent()Landroid/content/Intent;
    move-result-object v0
    iget-object v1, p0, Ledgekit/webview/PictureChooser;->activity:Landroid/app/Activity;
    const/16 v2, 0x7f
    invoke-virtual {v1, v0, v2}, Landroid/app/Activity;->startActivityForResult(Landroid/content/Intent;I)V
    :asked
    .catch Landroid/content/ActivityNotFoundException; {:ask .. :asked} :nobody
    const/4 v0, 0x1
    return v0
    :nobody
    move-exception v0
    const/4 v2, 0x0
    invoke-direct {p0, v2}, Ledgekit/webview/PictureChooser;->answer([Landroid/net/Uri;)V
    const/4 v0, 0x1
    return v0
.end method

# if (requestCode != REQUEST) return false;
# answer(WebChromeClient.FileChooserParams.parseResult(resultCode, data));
# return true;
.method public take(IILandroid/content/Intent;)Z
    .locals 1
    const/16 v0, 0x7f
    if-eq p1, v0, :ours
    const/4 v0, 0x0
    return v0
    :ours
    invoke-static {p2, p3}, Landroid/webkit/WebChromeClient$FileChooserParams;->parseResult(ILandroid/content/Intent;)[Landroid/net/Uri;
    move-result-object v0
    invoke-direct {p0, v0}, Ledgekit/webview/PictureChooser;->answer([Landroid/net/Uri;)V
    const/4 v0, 0x1
    return v0
.end method

# ValueCallback asked = waiting; waiting = null; if (asked != null) asked.onReceiveValue(chosen);
.method private answer([Landroid/net/Uri;)V
    .locals 2
    iget-object v0, p0, Ledgekit/webview/PictureChooser;->waiting:Landroid/webkit/ValueCallback;
    const/4 v1, 0x0
    iput-object v1, p0, Ledgekit/webview/PictureChooser;->waiting:Landroid/webkit/ValueCallback;
    if-eqz v0, :nobody
    invoke-interface {v0, p1}, Landroid/webkit/ValueCallback;->onReceiveValue(Ljava/lang/Object;)V
    :nobody
    return-void
.end method
