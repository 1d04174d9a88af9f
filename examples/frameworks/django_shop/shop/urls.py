"""Addresses."""

from django.urls import path

from . import views

urlpatterns = [
    path("orders", views.buy),
    path("orders/<str:number>", views.look),
    path("orders/<str:number>/refund", views.refund),
    path("hooks/<str:token>", views.hook),
]
